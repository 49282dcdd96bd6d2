// arlimit: floor for an all-reduce of float32 among R buffers of one address space. As many threads as buffers, each
// pinned to a core of its own, or as many as there are cores where there are fewer, reduce a shard each: a thread reads
// its shard of all R inputs, adds, and writes its shard of all R outputs. One spin barrier at entry, one at exit.
//
//            shard 0   shard 1   shard 2   shard 3       R = 4 on 4 cores; on 2 cores there are two shards
//   buffer 0 thread 0  thread 1  thread 2  thread 3
//   ...
//   buffer 3 thread 0  thread 1  thread 2  thread 3
//
// All buffers are in huge pages, aligned to them. Stores are ordinary (reg) or non-temporal (nt).
//
// usage: arlimit SECONDS R BYTES,... ; R: 2, 4 or 8; bytes: 8, 1K, 64MiB, rounded up to whole elements
// CSV: arlimit,R,bytes,oop|ip,reg|nt,threads,median us,least us,algbw GB/s,busbw GB/s
// It exits with 1, before it prints a time, if any output of the timed calls is not the sum.
#define _GNU_SOURCE
#include <immintrin.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { most = 8, batches = 900, warm = 3, huge = 2 << 20, streamed = 256 << 10 };

static int R, threads, cores[CPU_SETSIZE];
static float *in[most], *out[most];
static size_t n; // elements of a buffer
static int in_place, non_temporal;
static double secs;

// Thread 0 sets these before a barrier, and all threads read them after it.
static long iters; // calls of a batch
static int count;  // batches
static double took[batches];

static struct { _Alignas(128) atomic_int arrived; _Alignas(128) atomic_int turn; } gate;

static inline void barrier(void) {
	int turn = atomic_load_explicit(&gate.turn, memory_order_acquire);
	if (atomic_fetch_add(&gate.arrived, 1) == threads - 1) {
		atomic_store_explicit(&gate.arrived, 0, memory_order_relaxed);
		atomic_store_explicit(&gate.turn, turn + 1, memory_order_release);
		return;
	}
	while (atomic_load_explicit(&gate.turn, memory_order_acquire) == turn) _mm_pause();
}

static long clamp(double x, long least, long greatest) { return x < least ? least : x > greatest ? greatest : (long)x; }

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + 1e-9 * t.tv_nsec;
}

// reduce adds up elements lo to hi of r buffers. The compiler unrolls the loops over r, which is a constant to it.
static inline __attribute__((always_inline)) void reduce(int r, size_t lo, size_t hi, int nt, float **to) {
	size_t i = lo;
	for (; i + 16 <= hi; i += 16) {
		__m512 s = _mm512_loadu_ps(in[0] + i);
		for (int k = 1; k < r; k++) s = _mm512_add_ps(s, _mm512_loadu_ps(in[k] + i));
		for (int k = 0; k < r; k++) {
			if (nt) _mm512_stream_ps(to[k] + i, s);
			else _mm512_storeu_ps(to[k] + i, s);
		}
	}
	for (; i < hi; i++) {
		float s = in[0][i];
		for (int k = 1; k < r; k++) s += in[k][i];
		for (int k = 0; k < r; k++) to[k][i] = s;
	}
	if (nt) _mm_sfence();
}

// call is an all-reduce as thread t takes part in it. Shards begin with a cache line; the last one has what is left.
static void call(int t) {
	barrier();
	size_t shard = n / threads & ~(size_t)15, lo = shard * t, hi = t == threads - 1 ? n : lo + shard;
	float **to = in_place ? in : out;
	switch (R * 2 + non_temporal) {
	case 4: reduce(2, lo, hi, 0, to); break;
	case 5: reduce(2, lo, hi, 1, to); break;
	case 8: reduce(4, lo, hi, 0, to); break;
	case 9: reduce(4, lo, hi, 1, to); break;
	case 16: reduce(8, lo, hi, 0, to); break;
	case 17: reduce(8, lo, hi, 1, to); break;
	}
	barrier();
}

// thread makes the calls of thread t: warm ones, a few that say how long a call takes, and those that are timed.
static void *thread(void *arg) {
	int t = (int)(long)arg;
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cores[t], &set);
	pthread_setaffinity_np(pthread_self(), sizeof set, &set);
	for (int i = 0; i < warm; i++) call(t);
	double began = now();
	for (int i = 0; i < warm; i++) call(t);
	if (t == 0) {
		double each = (now() - began) / warm;
		iters = clamp(secs / 20 / each, 1, 1L << 40);
		count = clamp(secs / (iters * each), 7, batches);
	}
	double begun = now();
	for (int b = 0;; b++) {
		barrier();
		if (b == count) return 0;
		began = now();
		for (long i = 0; i < iters; i++) call(t);
		if (t != 0) continue;
		took[b] = (now() - began) / iters;
		if (b >= 2 && now() - begun > 10 * secs) count = b + 1; // a busy machine
	}
}

// value is element i of buffer k before the first call. Neighbours differ, and so do buffers; all sums are exact.
static float value(int k, size_t i) { return i % 1021 + k + 1; }

// fill puts in the inputs, and into the outputs a number that no sum is.
static void fill(void) {
	for (size_t i = 0; i < n; i++)
		for (int k = 0; k < R; k++) in[k][i] = value(k, i), out[k][i] = NAN;
}

// check says whether all buffers have the sum. In place every call after the first multiplies by R, a power of two, until
// the number is infinite: so the calls are counted as well.
static int check(void) {
	long calls = 2 * warm + iters * count;
	double times = in_place ? ldexp(1, clamp((calls - 1) * __builtin_ctz(R), 0, 200)) : 1;
	for (size_t i = 0; i < n; i++) {
		double sum = 0;
		for (int k = 0; k < R; k++) sum += value(k, i);
		for (int k = 0; k < R; k++) {
			float have = (in_place ? in : out)[k][i], want = sum * times;
			if (have == want) continue;
			fprintf(stderr, "arlimit: R %d, %zu bytes, %s, %s: buffer %d element %zu is %g, want %g\n", R, n * 4,
				in_place ? "ip" : "oop", non_temporal ? "nt" : "reg", k, i, have, want);
			return 0;
		}
	}
	return 1;
}

static void fail(const char *what, const char *got) {
	fprintf(stderr, "arlimit: %s: %s\nusage: arlimit SECONDS R BYTES,...\n", what, got);
	exit(2);
}

// parse_size reads 8, 1K, 1KiB or 64M, and rounds up to whole elements.
static size_t parse_size(const char *text) {
	char *end;
	size_t size = strtoull(text, &end, 10);
	switch (*end) {
	case 'K': size <<= 10, end++; break;
	case 'M': size <<= 20, end++; break;
	case 'G': size <<= 30, end++; break;
	}
	if (end[0] == 'i' && end[1] == 'B' && end[-1] > '9') end += 2;
	if (*text < '0' || *text > '9' || *end || size < 1 || size > (size_t)4 << 30)
		fail("want sizes such as 8,1K,64MiB, 4G at most", text);
	return (size + 3) & ~(size_t)3;
}

static float *buffer(size_t size) {
	char *p = mmap(0, size + 2 * huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) {
		perror("arlimit: no memory for a buffer");
		exit(1);
	}
	p = (char *)(((size_t)p + huge - 1) & ~(size_t)(huge - 1));
	madvise(p, size + huge, MADV_HUGEPAGE);
	memset(p, 0, size);
	return (float *)p;
}

static int compare(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

// measure prints a line of the CSV.
static int measure(void) {
	pthread_t all[most];
	fill();
	for (long t = 0; t < threads; t++) {
		if (pthread_create(&all[t], 0, thread, (void *)t)) {
			fprintf(stderr, "arlimit: cannot start thread %ld\n", t);
			exit(1);
		}
	}
	for (int t = 0; t < threads; t++) pthread_join(all[t], 0);
	if (!check()) return 0;
	qsort(took, count, sizeof *took, compare);
	double median = took[count / 2], algbw = n * 4 / median / 1e9;
	printf("arlimit,%d,%zu,%s,%s,%d,%.3f,%.3f,%.3f,%.3f\n", R, n * 4, in_place ? "ip" : "oop",
		non_temporal ? "nt" : "reg", threads, median * 1e6, took[0] * 1e6, algbw, algbw * 2 * (R - 1) / R);
	fflush(stdout);
	return 1;
}

int main(int argc, char **argv) {
	if (argc != 4) fail("want three arguments", argc > 1 ? argv[argc - 1] : "none");
	secs = atof(argv[1]);
	if (!(secs > 0)) fail("want seconds", argv[1]);
	R = atoi(argv[2]);
	if (R != 2 && R != 4 && R != 8) fail("want 2, 4 or 8 buffers", argv[2]);

	size_t sizes[64], largest = 0;
	int kinds = 0;
	for (char *s = strtok(argv[3], ","); s; s = strtok(0, ",")) {
		if (kinds == 64) fail("want 64 sizes at most", s);
		sizes[kinds] = parse_size(s);
		if (sizes[kinds] > largest) largest = sizes[kinds];
		kinds++;
	}
	if (kinds == 0) fail("want sizes", "none");

	cpu_set_t set;
	sched_getaffinity(0, sizeof set, &set);
	for (int c = 0; c < CPU_SETSIZE && threads < R; c++)
		if (CPU_ISSET(c, &set)) cores[threads++] = c;
	for (int k = 0; k < R; k++) in[k] = buffer(largest), out[k] = buffer(largest);
	for (int k = 0; k < kinds; k++) {
		n = sizes[k] / 4;
		for (in_place = 0; in_place < 2; in_place++)
			for (non_temporal = 0; non_temporal < 2; non_temporal++)
				if ((!non_temporal || sizes[k] >= streamed) && !measure()) return 1;
	}
	return 0;
}
