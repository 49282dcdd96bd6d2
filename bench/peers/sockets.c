// What the sockets of this machine can do with the messages of a collective: no headers, no checks, no copies of a replica's own part.
//
//   sockets [-u] [-n PROCESSES] [-c COLLECTIVE,...] [-s BYTES,...] [-t SECONDS] [-w WAY,...]
//
// Prints a line for each collective and size: tcp or unix, processes, collective, bytes of the larger buffer, microseconds a call (median of 20
// blocks). An all-reduce is the faster of log2 n rounds of the whole buffer with one peer (n a power of two) and of two rounds of an nth with each;
// reduce-scatter, all-gather and all-to-all are one of those; a broadcast is the whole buffer from process 0 to each other one.
// -u: unix sockets, else TCP over loopback. A process that waits tries each socket in turn, and yields after every 32 such looks, or after each if
// there are more processes than processors.
//
// -w compares ways, block by block in turn, in a line for each: its name, microseconds, and the time of the first way by its own, median, least and
// greatest over the blocks. A way is how many connections each pair has (1 to 8), each of which carries an equal part of a message of 64 KiB and more;
// behind it, after an x, how many KiB a write has at most (512); after an s, SO_SNDBUF of its sockets in KiB (the kernel's); and f to have what
// arrives added up as float32, 64 KiB at a time, where it is read, or b, with one connection, by a second thread beside the one that reads: 1, 4,
// 1x64, 1s256, 1s256f, 1b. Only an all-reduce and a reduce-scatter add, and their sums are checked. An all-reduce is that of the two that is faster
// the first way. Without -w it is 1s256, the fastest over loopback, and 1 over unix sockets and between namespaces.
// GCL_HOSTS, the files of network namespaces with commas between, has process r in the rth, at 10.77.0.(r+1): bench/hosts.sh -once.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAXN = 16, MAXK = 8, MAXWAYS = 10, BLOCKS = 20, READ = 64 << 10 };
enum { PAIRS, DIRECT, TWICE, STAR };
static char *compared; // the ways
static int n = 2, rank, unixes, fds[MAXWAYS][MAXN][MAXK], yield_every = 32;
static double secs = 0.1;
static char *out, *in[MAXN], *sum;
static struct way { int k; size_t step, hold; char fold; char name[16]; } ways[MAXWAYS] = {{1, 512 << 10, 0, 0, "1"}}, *way = ways;

static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
static void die(const char *what) { perror(what); exit(1); }

static char *host[MAXN];
static int hosts;

static void enter(int r) {
	if (!hosts) return;
	int f = open(host[r], O_RDONLY);
	if (f < 0 || setns(f, CLONE_NEWNET)) die(host[r]);
	close(f);
}

// pair makes two connected sockets, of processes a and b, for the way at hand.
static void pair(int a, int b, int s[2]) {
	if (unixes) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s)) die("socketpair");
		return;
	}
	enter(b);
	int l = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(hosts ? 0x0a4d0001u + b : INADDR_LOOPBACK)};
	socklen_t len = sizeof to;
	if (bind(l, (void *)&to, len) || listen(l, 1) || getsockname(l, (void *)&to, &len)) die("listen");
	enter(a);
	s[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(s[0], (void *)&to, len) || (s[1] = accept(l, 0, 0)) < 0) die("connect");
	close(l);
	for (int i = 0; i < 2; i++) {
		setsockopt(s[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		int hold = way->hold, got;
		len = sizeof got;
		if (hold && (setsockopt(s[i], SOL_SOCKET, SO_SNDBUF, &hold, sizeof hold) || getsockopt(s[i], SOL_SOCKET, SO_SNDBUF, &got, &len) || got < 2 * hold))
			if (compared) { fprintf(stderr, "sockets: way %s: net.core.wmem_max is less\n", way->name); exit(1); }
		fcntl(s[i], F_SETFL, O_NONBLOCK);
	}
}

static void add(char *to, const char *from, size_t bytes) {
	float *d = (float *)to;
	const float *a = (const float *)from;
	for (size_t i = 0; i < bytes / sizeof(float); i++) d[i] += a[i];
}

// What the second thread has to do: it adds what lies at `from` to sum, of the one message that is being received. Bytes are counted on from message
// to message, and base is the count at its beginning: there is how many have come, done how many are added. It sleeps on sleeps.
static struct { char *from; size_t base; _Atomic size_t there, done; _Atomic int sleeps; } beside;

static void *adder(void *unused) {
	(void)unused;
	for (int looks = 0;;) {
		size_t there = beside.there, done = beside.done;
		if (done < there) {
			size_t bytes = there - done < READ / 4 ? there - done : READ / 4;
			add(sum + (done - beside.base), beside.from + (done - beside.base), bytes);
			beside.done = done + bytes;
			looks = 0;
		} else if (++looks % 32 == 0) {
			if (looks < 1024) sched_yield();
			else {
				beside.sleeps = 1;
				if (beside.done == beside.there) syscall(SYS_futex, &beside.sleeps, FUTEX_WAIT, 1, 0, 0, 0);
				beside.sleeps = looks = 0;
			}
		}
	}
	return 0;
}

static void tell(size_t come) {
	beside.there = beside.base + (come & ~3UL);
	int one = 1;
	if (atomic_compare_exchange_strong(&beside.sleeps, &one, 0)) syscall(SYS_futex, &beside.sleeps, FUTEX_WAKE, 1, 0, 0, 0);
}

// exchange sends len bytes to each process of the set `to` and receives as many from each of `from`, an equal part by each connection. fold says
// whether to add what comes; the second thread adds that of one process, the others' are added where they are read.
static void exchange(unsigned to, unsigned from, size_t len, int fold) {
	int k = len < READ ? 1 : way->k, (*fd)[MAXK] = fds[way - ways];
	size_t sent[MAXN][MAXK] = {0}, got[MAXN][MAXK] = {0}, part = (len / k + 63) & ~63UL, all[MAXN] = {0}, gone[MAXN] = {0};
	int first = fold && way->fold == 'b' && from ? __builtin_ctz(from) : -1;
	if (first >= 0) {
		beside.from = in[first];
		beside.base = beside.there;
	}
	for (int looks = 1; to | from; looks++) {
		for (int r = 0; r < n; r++) for (int c = 0; c < k && to >> r & 1; c++) {
			size_t lo = c * part, hi = c == k - 1 ? len : lo + part, at = lo + sent[r][c];
			if (at == hi && len) continue;
			ssize_t m = send(fd[r][c], out + at, hi - at < way->step ? hi - at : way->step, MSG_NOSIGNAL);
			if (m < 0 && errno != EAGAIN) die("send");
			if (m > 0) { sent[r][c] += m; if ((gone[r] += m) == len) to &= ~(1u << r); }
		}
		for (int r = 0; r < n; r++) for (int c = 0; c < k && from >> r & 1; c++) {
			size_t lo = c * part, hi = c == k - 1 ? len : lo + part, at = lo + got[r][c], most = hi - at;
			if (at == hi && len) continue;
			if (fold && way->fold && most > READ) most = READ;
			ssize_t m = recv(fd[r][c], in[r] + at, most, 0);
			if (m == 0) errno = ECONNRESET;
			if (m == 0 || (m < 0 && errno != EAGAIN)) die("recv");
			if (m <= 0) continue;
			got[r][c] += m;
			if ((all[r] += m) == len) from &= ~(1u << r);
			if (r == first) tell(all[r]);
			else if (fold && way->fold) add(sum + (at & ~3UL), in[r] + (at & ~3UL), ((at + m) & ~3UL) - (at & ~3UL));
		}
		if (looks % yield_every == 0) sched_yield();
	}
	if (first >= 0) for (int looks = 1; beside.done < beside.there; looks++) if (looks % 32 == 0) sched_yield();
}

static void call(int pattern, size_t bytes, int fold) {
	unsigned others = ((1u << n) - 1) & ~(1u << rank);
	switch (pattern) {
	case PAIRS: for (int d = 1; d < n; d *= 2) exchange(1u << (rank ^ d), 1u << (rank ^ d), bytes, fold); break;
	case TWICE: call(DIRECT, bytes, fold), call(DIRECT, bytes, 0); break;
	case DIRECT: exchange(others, others, (bytes + n - 1) / n, fold); break;
	case STAR: if (rank == 0) exchange(others, 0, bytes, 0); else exchange(0, 1, bytes, 0);
	}
}

static int ascending(const void *a, const void *b) { double x = *(double *)a, y = *(double *)b; return (x > y) - (x < y); }

// check has all send ones, and wants as many in each element as there were messages.
static void check(int pattern, size_t bytes) {
	size_t len = pattern == PAIRS ? bytes : (bytes + n - 1) / n;
	float want = 0, *one = (float *)out, *is = (float *)sum;
	if (pattern == PAIRS) for (int d = 1; d < n; d *= 2) want++; else want = n - 1;
	for (size_t i = 0; i < bytes / sizeof *one; i++) one[i] = 1, is[i] = 0;
	for (int r = 0; r < n; r++) memset(in[r], 0x7f, bytes); // what was there before counts for much
	for (int i = 0; i < 3; i++) call(pattern, bytes, 1);
	want *= 3;
	for (size_t i = 0; i < len / sizeof *is; i++) if (is[i] != want) {
		fprintf(stderr, "sockets: way %s, %zu bytes: element %zu is %g, want %g\n", way->name, bytes, i, is[i], want);
		exit(1);
	}
}

// measure is the times of calls of each way in microseconds, in blocks. All processes make as many calls as process 0 finds fit.
static void measure(int pattern, size_t bytes, int fold, double took[MAXWAYS][BLOCKS]) {
	char *mine = out, *theirs = in[0], word[sizeof(long)];
	long calls[MAXWAYS];
	for (way = ways; way->k; way++) {
		if (fold && way->fold) check(pattern, bytes);
		double t = now();
		for (int i = 0; i < 10; i++) call(pattern, bytes, fold), call(DIRECT, 8 * n, 0);
		long *some = &calls[way - ways];
		*some = secs / BLOCKS / ((now() - t) / 10) + 1;
		memcpy(word, some, sizeof word);
		out = in[0] = word;
		exchange(rank ? 0 : (1u << n) - 2, rank ? 1 : 0, sizeof word, 0);
		memcpy(some, word, sizeof word);
		out = mine, in[0] = theirs;
	}
	for (int b = 0; b < BLOCKS; b++) for (way = ways; way->k; way++) {
		call(DIRECT, 8 * n, 0);
		double t = now();
		for (long i = 0; i < calls[way - ways]; i++) call(pattern, bytes, fold);
		if (pattern == STAR) exchange(rank ? 1 : (1u << n) - 2, rank ? 1 : (1u << n) - 2, 8, 0); // all have it
		took[way - ways][b] = (now() - t) / calls[way - ways] * 1e6;
	}
	way = ways;
}

static double median(const double took[BLOCKS]) {
	double t[BLOCKS];
	memcpy(t, took, sizeof t);
	qsort(t, BLOCKS, sizeof *t, ascending);
	return (t[BLOCKS / 2 - 1] + t[BLOCKS / 2]) / 2;
}

// parse takes the ways, such as "1,4,1f".
static void parse(char *list) {
	int count = 0;
	memset(ways, 0, sizeof ways);
	for (char *name; (name = strsep(&list, ",")); count++) {
		char *end;
		long k = strtol(name, &end, 10), step = *end == 'x' ? strtol(end + 1, &end, 10) : 512;
		long hold = 0;
		if (*end == 's' && (hold = strtol(end + 1, &end, 10)) == 0) hold = -1;
		if (count == MAXWAYS - 1 || k < 1 || k > MAXK || step < 1 || step > 1 << 20 || hold < 0 || hold > 1 << 20 || (hold && unixes) ||
		    (*end && (!strchr("fb", *end) || end[1])) || (*end == 'b' && k > 1)) {
			fprintf(stderr, "sockets: -w %s, want 1 to %d connections, then x and KiB, s and KiB (not with -u), and f or, of one connection, b; "
				"%d ways at most\n", name, MAXK, MAXWAYS - 1);
			exit(2);
		}
		ways[count] = (struct way){.k = k, .step = step << 10, .hold = hold << 10, .fold = *end};
		snprintf(ways[count].name, sizeof ways->name, "%s", name);
	}
}

int main(int c, char **v) {
	char sizes[1000] = "8,1024,32768,1048576,16777216", names[1000] = "allreduce,reducescatter,allgather,alltoall,broadcast";
	for (int o; (o = getopt(c, v, "un:c:s:t:w:")) != -1;) switch (o) {
		case 'u': unixes = 1; break;
		case 'n': n = atoi(optarg); break;
		case 'c': snprintf(names, sizeof names, "%s", optarg); break;
		case 's': snprintf(sizes, sizeof sizes, "%s", optarg); break;
		case 't': secs = atof(optarg); break;
		case 'w': compared = optarg; break;
		default: return 2;
	}
	if (n < 2 || n > MAXN) { fprintf(stderr, "sockets: -n %d, want 2 to %d\n", n, MAXN); return 2; }
	if (getenv("GCL_HOSTS")) {
		char *list = strdup(getenv("GCL_HOSTS"));
		while (hosts < MAXN && (host[hosts] = strsep(&list, ","))) hosts++;
		if (hosts < n || unixes) { fprintf(stderr, "sockets: -n %d over %d hosts in GCL_HOSTS, want TCP and a host each\n", n, hosts); return 2; }
	}
	if (compared) parse(compared);
	else if (!unixes && !hosts) ways[0].hold = 256 << 10;
	if (n > sysconf(_SC_NPROCESSORS_ONLN)) yield_every = 1;
	int threads = 0;
	static int all[MAXWAYS][MAXN][MAXN][MAXK];
	for (way = ways; way->k; way++) {
		threads |= way->fold == 'b';
		for (int a = 0; a < n; a++) for (int b = 0; b < a; b++) for (int k = 0; k < way->k; k++) {
			int s[2];
			pair(a, b, s);
			all[way - ways][a][b][k] = s[0], all[way - ways][b][a][k] = s[1];
		}
	}
	for (rank = n - 1; rank > 0; rank--) if (fork() == 0) break; // each child goes on with its rank; the parent is process 0
	for (way = ways; way->k; way++) for (int a = 0; a < n; a++) for (int b = 0; b < n; b++) for (int k = 0; k < way->k && a != b; k++) {
		int *s = &all[way - ways][a][b][k];
		if (a == rank) fds[way - ways][b][k] = *s; else close(*s);
	}
	way = ways;
	enter(rank);
	pthread_t thread;
	if (threads && pthread_create(&thread, 0, adder, 0)) die("thread");
	for (char *rest = sizes, *size; (size = strsep(&rest, ","));) {
		size_t bytes = strtoul(size, 0, 10);
		if (bytes == 0) { if (!rank) fprintf(stderr, "sockets: -s %s, want bytes\n", size); return 2; }
		for (int r = -2; r < n; r++) {
			char *b = mmap(0, bytes + 64, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
			*(r == -2 ? &out : r == -1 ? &sum : &in[r]) = b;
		}
		char list[1000];
		strcpy(list, names);
		for (char *more = list, *name; (name = strsep(&more, ","));) {
			static double took[2][MAXWAYS][BLOCKS];
			int patterns = 1;
			if (!strcmp(name, "broadcast")) measure(STAR, bytes, 0, took[0]);
			else if (strcmp(name, "allreduce")) measure(DIRECT, bytes, !strcmp(name, "reducescatter"), took[0]);
			else {
				measure(TWICE, bytes, 1, took[0]);
				if (!(n & (n - 1))) measure(PAIRS, bytes, 1, took[patterns++]);
			}
			int faster = patterns > 1 && median(took[1][0]) < median(took[0][0]);
			for (int w = 0; ways[w].k; w++) {
				double *t = took[faster][w], ratio[BLOCKS];
				for (int b = 0; b < BLOCKS; b++) ratio[b] = took[faster][0][b] / t[b];
				qsort(ratio, BLOCKS, sizeof *ratio, ascending);
				if (rank) continue;
				printf("%s,%d,%s,%zu", unixes ? "unix" : "tcp", n, name, bytes);
				if (compared) printf(",%s,%.3f,%.3f,%.3f,%.3f\n", ways[w].name, median(t), median(ratio), ratio[0], ratio[BLOCKS - 1]);
				else printf(",%.3f\n", median(t));
				fflush(stdout);
			}
		}
		munmap(out, bytes + 64);
		munmap(sum, bytes + 64);
		for (int r = 0; r < n; r++) munmap(in[r], bytes + 64);
	}
	if (rank) _exit(0);
	int failed = 0, status;
	while (wait(&status) > 0) failed |= status != 0;
	return failed;
}
