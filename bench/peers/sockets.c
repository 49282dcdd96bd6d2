// What the sockets of this machine can do with the messages of a collective: no headers, no checks, no folds, no copies of a replica's own part.
//
//   sockets [-u] [-n PROCESSES] [-c COLLECTIVE,...] [-s BYTES,...] [-t SECONDS]
//
// Prints a line for each collective and size: tcp or unix, processes, collective, bytes of the larger buffer, microseconds a call (median of 20
// blocks). An all-reduce is the faster of log2 n rounds of the whole buffer with one peer (n a power of two) and of two rounds of an nth with each;
// reduce-scatter, all-gather and all-to-all are one of those; a broadcast is the whole buffer from process 0 to each other one.
// -u: unix sockets, else TCP over loopback. A process that waits tries each socket in turn, and yields after every 32 such looks, or after each if
// there are more processes than processors.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAXN = 16, BLOCKS = 20, STEP = 512 << 10 };
enum { PAIRS, DIRECT, TWICE, STAR };
static int n = 2, rank, unixes, fds[MAXN], yield_every = 32;
static double secs = 0.1;
static char *out, *in[MAXN];

static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
static void die(const char *what) { perror(what); exit(1); }

// pair makes two connected sockets.
static void pair(int s[2]) {
	if (unixes) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s)) die("socketpair");
		return;
	}
	int l = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof a;
	s[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(l, (void *)&a, len) || listen(l, 1) || getsockname(l, (void *)&a, &len) || connect(s[0], (void *)&a, len) || (s[1] = accept(l, 0, 0)) < 0)
		die("loopback");
	close(l);
	for (int i = 0; i < 2; i++) {
		setsockopt(s[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		fcntl(s[i], F_SETFL, O_NONBLOCK);
	}
}

// exchange sends len bytes to each process of the set `to` and receives as many from each of `from`.
static void exchange(unsigned to, unsigned from, size_t len) {
	size_t sent[MAXN] = {0}, got[MAXN] = {0};
	for (int looks = 1; to | from; looks++) {
		for (int r = 0; r < n; r++) {
			if (!(to >> r & 1)) continue;
			ssize_t k = send(fds[r], out + sent[r], len - sent[r] < STEP ? len - sent[r] : STEP, MSG_NOSIGNAL);
			if (k < 0 && errno != EAGAIN) die("send");
			if (k > 0 && (sent[r] += k) == len) to &= ~(1u << r);
		}
		for (int r = 0; r < n; r++) {
			if (!(from >> r & 1)) continue;
			ssize_t k = recv(fds[r], in[r] + got[r], len - got[r], 0);
			if (k == 0 || (k < 0 && errno != EAGAIN)) die("recv");
			if (k > 0 && (got[r] += k) == len) from &= ~(1u << r);
		}
		if (looks % yield_every == 0) sched_yield();
	}
}

static void call(int pattern, size_t bytes) {
	unsigned others = ((1u << n) - 1) & ~(1u << rank);
	switch (pattern) {
	case PAIRS: for (int d = 1; d < n; d *= 2) exchange(1u << (rank ^ d), 1u << (rank ^ d), bytes); break;
	case TWICE: call(DIRECT, bytes), call(DIRECT, bytes); break;
	case DIRECT: exchange(others, others, (bytes + n - 1) / n); break;
	case STAR: if (rank == 0) exchange(others, 0, bytes); else exchange(0, 1, bytes);
	}
}

static int ascending(const void *a, const void *b) { double x = *(double *)a, y = *(double *)b; return (x > y) - (x < y); }

// measure is the time of a call in microseconds. All processes make as many calls as process 0 finds fit.
static double measure(int pattern, size_t bytes) {
	double t = now(), took[BLOCKS];
	for (int i = 0; i < 10; i++) call(pattern, bytes), call(DIRECT, 8 * n);
	long calls = secs / BLOCKS / ((now() - t) / 10) + 1;
	char *mine = out, *theirs = in[0], word[sizeof calls];
	memcpy(word, &calls, sizeof calls);
	out = in[0] = word;
	exchange(rank ? 0 : (1u << n) - 2, rank ? 1 : 0, sizeof calls);
	memcpy(&calls, word, sizeof calls);
	out = mine, in[0] = theirs;
	for (int b = 0; b < BLOCKS; b++) {
		call(DIRECT, 8 * n);
		t = now();
		for (long i = 0; i < calls; i++) call(pattern, bytes);
		if (pattern == STAR) exchange(rank ? 1 : (1u << n) - 2, rank ? 1 : (1u << n) - 2, 8); // all have it
		took[b] = (now() - t) / calls * 1e6;
	}
	qsort(took, BLOCKS, sizeof *took, ascending);
	return took[BLOCKS / 2];
}

int main(int c, char **v) {
	char sizes[1000] = "8,1024,32768,1048576,16777216", names[1000] = "allreduce,reducescatter,allgather,alltoall,broadcast";
	for (int o; (o = getopt(c, v, "un:c:s:t:")) != -1;) switch (o) {
		case 'u': unixes = 1; break;
		case 'n': n = atoi(optarg); break;
		case 'c': snprintf(names, sizeof names, "%s", optarg); break;
		case 's': snprintf(sizes, sizeof sizes, "%s", optarg); break;
		case 't': secs = atof(optarg); break;
		default: return 2;
	}
	if (n < 2 || n > MAXN) { fprintf(stderr, "sockets: -n %d, want 2 to %d\n", n, MAXN); return 2; }
	if (n > sysconf(_SC_NPROCESSORS_ONLN)) yield_every = 1;
	int all[MAXN][MAXN];
	for (int a = 0; a < n; a++) for (int b = 0; b < a; b++) { int s[2]; pair(s); all[a][b] = s[0]; all[b][a] = s[1]; }
	for (rank = n - 1; rank > 0; rank--) if (fork() == 0) break; // each child goes on with its rank; the parent is process 0
	for (int a = 0; a < n; a++) for (int b = 0; b < n; b++) if (a != b) { if (a == rank) fds[b] = all[a][b]; else close(all[a][b]); }
	for (char *rest = sizes, *size; (size = strsep(&rest, ","));) {
		size_t bytes = strtoul(size, 0, 10);
		out = mmap(0, bytes + 64, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		for (int r = 0; r < n; r++) in[r] = mmap(0, bytes + 64, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		char list[1000];
		strcpy(list, names);
		for (char *more = list, *name; (name = strsep(&more, ","));) {
			double least = 0;
			if (!strcmp(name, "broadcast")) least = measure(STAR, bytes);
			else if (strcmp(name, "allreduce")) least = measure(DIRECT, bytes);
			else {
				least = measure(TWICE, bytes);
				double other = n & (n - 1) ? least : measure(PAIRS, bytes);
				if (other < least) least = other;
			}
			if (rank == 0) printf("%s,%d,%s,%zu,%.3f\n", unixes ? "unix" : "tcp", n, name, bytes, least), fflush(stdout);
		}
		munmap(out, bytes + 64);
		for (int r = 0; r < n; r++) munmap(in[r], bytes + 64);
	}
	if (rank) _exit(0);
	while (wait(0) > 0) ;
	return 0;
}
