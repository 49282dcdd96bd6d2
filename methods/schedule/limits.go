package schedule

// maxChunks bounds what a check keeps of each rank in memory. It is four times what package methods makes.
const maxChunks = 1 << 20

// maxState bounds what a check keeps of all ranks in memory, in chunks: 8 GiB.
const maxState = 1 << 30

// maxSlots bounds the numbers of scratch slots. It is twice what package methods makes for 65,536 ranks.
const maxSlots = 1 << 20
