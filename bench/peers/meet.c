// meet: floor for a call among N processes that share memory, whatever it is of: they do nothing but meet, again and
// again. Each says in a word of its own that it has come, and looks at those of the others. Between looks in vain it
// gives its processor away, so many times at most; then it sleeps on a futex, and who comes last wakes it.
//
// usage: meet SECONDS N LOOKS ; LOOKS 0: it sleeps at once
// CSV: meet,N,looks,median us,least us
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { most = 64, batches = 21, warm = 3 };

static struct { _Alignas(128) atomic_uint come; atomic_uint sleeps; } *at; // by process
static unsigned n, me, looks;

static int all(unsigned meeting) {
	for (unsigned i = 0; i < n; i++)
		if ((int)(atomic_load(&at[i].come) - meeting) < 0) return 0;
	return 1;
}

static void meet(unsigned meeting) {
	atomic_store(&at[me].come, meeting);
	if (all(meeting)) {
		for (unsigned i = 0; i < n; i++)
			if (i != me && atomic_exchange(&at[i].sleeps, 0)) syscall(SYS_futex, &at[i].sleeps, FUTEX_WAKE, 1, 0, 0, 0);
		return;
	}
	for (unsigned k = 0; k < looks; k++) {
		if (all(meeting)) return;
		sched_yield();
	}
	while (!all(meeting)) {
		atomic_store(&at[me].sleeps, 1);
		if (!all(meeting)) syscall(SYS_futex, &at[me].sleeps, FUTEX_WAIT, 1, 0, 0, 0);
	}
	atomic_store(&at[me].sleeps, 0);
}

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + 1e-9 * t.tv_nsec;
}

static int ascending(const void *a, const void *b) { return (*(double *)a > *(double *)b) - (*(double *)a < *(double *)b); }

int main(int argc, char **argv) {
	double secs = 0, took[batches];
	int count = 0, given = -1;
	char more; // whatever follows a number
	if (argc != 4 || sscanf(argv[1], "%lf%c", &secs, &more) != 1 || sscanf(argv[2], "%d%c", &count, &more) != 1 ||
	    sscanf(argv[3], "%d%c", &given, &more) != 1 || !(secs > 0 && secs < 3600) || count < 2 || count > most ||
	    given < 0) {
		fprintf(stderr, "meet: want seconds, 2 to %d processes, and how often each looks\n", most);
		return 2;
	}
	n = count, looks = given;
	unsigned *meetings = mmap(0, 4096 + most * sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (meetings == MAP_FAILED) return perror("meet: mmap"), 1;
	at = (void *)((char *)meetings + 4096);
	for (unsigned i = 1; i < n && me == 0; i++) {
		int child = fork();
		if (child < 0) { // those that there are end with this one
			perror("meet: fork");
			return 1;
		}
		if (child == 0) prctl(PR_SET_PDEATHSIG, SIGKILL), me = i;
	}
	unsigned meeting = 1, batch = 100;
	for (int i = -warm; i < batches; i++) {
		double began = now();
		for (unsigned k = 0; k < batch; k++) meet(meeting++);
		double each = (now() - began) / batch;
		if (i >= 0) took[i] = each;
		if (me == 0) { // how many make up a batch's part of the time
			double want = secs / batches / each;
			*meetings = want < 100 ? 100 : want > 1e8 ? 100000000 : (unsigned)want;
		}
		meet(meeting++);
		if (i < 0) batch = *meetings;
		meet(meeting++); // all have read it
	}
	if (me != 0) return 0;
	while (wait(0) > 0) {}
	qsort(took, batches, sizeof *took, ascending);
	printf("meet,%u,%u,%.3f,%.3f\n", n, looks, took[batches / 2] * 1e6, took[0] * 1e6);
}
