package kernel

type Fold struct {
	Op           Op
	Type         Type
	Square, Wide bool
}

func (f Fold) Loop() func(dsts, srcs [][]byte, by int, stream bool) {
	bin := Binary(f.Op, f.Type)
	return func(dsts, srcs [][]byte, by int, stream bool) {
		d := dsts[0]
		if len(srcs) == 1 {
			copy(d, srcs[0])
		} else {
			bin(d, srcs[0], srcs[1])
			for _, s := range srcs[2:] {
				bin(d, d, s)
			}
		}
		for _, o := range dsts[1:] {
			copy(o, d)
		}
	}
}

func Copy(dst, src []byte, stream bool) { copy(dst, src) }
