//go:build mpi

#define _GNU_SOURCE
#include "engine.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The library's name starts with what the headers are of, or program and library do not belong together. */
const char *engine_header(void) {
#if defined(OPEN_MPI)
	return "Open MPI";
#elif defined(MPICH_VERSION)
	return "MPICH";
#else
	return "";
#endif
}

/* MPI libraries put up signal handlers, without the alternate stack that Go's need. Go's are put back. */
int engine_init(int *provided, char *library, int size) {
	char name[MPI_MAX_LIBRARY_VERSION_STRING];
	struct sigaction before[NSIG];
	int length = 0, initialized = 0, finalized = 0;
	int e = MPI_Get_library_version(name, &length);
	if (e != MPI_SUCCESS) {
		return e;
	}
	strncpy(library, name, size - 1);
	library[size - 1] = 0;
	if ((e = MPI_Initialized(&initialized)) || (e = MPI_Finalized(&finalized))) {
		return e;
	}
	if (finalized) {
		return -1;
	}
	if (strstr(name, engine_header()) == NULL) {
		return -2;
	}
	for (int s = 1; s < NSIG; s++) {
		sigaction(s, NULL, &before[s]);
	}
	e = initialized ? MPI_Query_thread(provided) : MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, provided);
	for (int s = 1; s < NSIG; s++) {
		struct sigaction now;
		if (sigaction(s, NULL, &now) == 0 &&
			(now.sa_sigaction != before[s].sa_sigaction || now.sa_flags != before[s].sa_flags)) {
			sigaction(s, &before[s], NULL);
		}
	}
	if (e == MPI_SUCCESS) {
		e = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	}
	return e;
}

int engine_finalize(void) {
	int initialized = 0, finalized = 0;
	MPI_Initialized(&initialized);
	MPI_Finalized(&finalized);
	return initialized && !finalized ? MPI_Finalize() : MPI_SUCCESS;
}

engine *engine_new(MPI_Comm comm) {
	engine *e = calloc(1, sizeof *e);
	if (e != NULL) {
		e->comm = comm;
	}
	return e;
}

void engine_free(engine *e) {
	free(e->queue);
	free(e->rows);
	free(e->requests);
	free(e->statuses);
	free(e->indices);
	free(e);
}

/* grow makes room for n operations. */
static int grow(engine *e, int n) {
	if (n <= e->cap) {
		return 0;
	}
	int cap = e->cap ? e->cap : 16;
	while (cap < n) {
		cap *= 2;
	}
#define GROW(field)                                                  \
	do {                                                             \
		void *more = realloc(e->field, cap * sizeof *e->field);      \
		if (more == NULL) {                                          \
			return -1;                                               \
		}                                                            \
		e->field = more;                                             \
	} while (0)
	GROW(queue);
	GROW(rows);
	GROW(requests);
	GROW(statuses);
	GROW(indices);
#undef GROW
	e->cap = cap;
	return 0;
}

/* engine_want has the next engine_poll post an operation. It returns 0, or -1 if there is no memory. */
int engine_want(engine *e, op *o) {
	if (grow(e, e->wanted + e->posted + 1) != 0) {
		return -1;
	}
	o->state = OP_WANTED;
	e->queue[e->wanted++] = o;
	return 0;
}

/* done takes an operation from the rows. */
static void done(engine *e, int row, int got, int error) {
	op *o = e->rows[row];
	o->state = OP_DONE;
	o->got = got;
	o->error = error;
	int last = --e->posted;
	if (row != last) {
		e->rows[row] = e->rows[last];
		e->requests[row] = e->requests[last];
		e->rows[row]->row = row;
	}
}

/* post starts the operations that are wanted. */
static void post(engine *e) {
	for (int i = 0; i < e->wanted; i++) {
		op *o = e->queue[i];
		int row = e->posted++;
		MPI_Request *r = &e->requests[row];
		*r = MPI_REQUEST_NULL;
		int error = o->sends ? MPI_Isend((void *)o->at, o->size, MPI_BYTE, o->peer, o->tag, e->comm, r)
		                     : MPI_Irecv((void *)o->at, o->size, MPI_BYTE, o->peer, o->tag, e->comm, r);
		o->state = OP_POSTED;
		o->ending = 0;
		o->row = row;
		e->rows[row] = o;
		if (error != MPI_SUCCESS) {
			done(e, row, 0, error);
		}
	}
	e->wanted = 0;
}

/* look tests all rows, and returns how many are done. */
static int look(engine *e) {
	int n = 0;
	if (e->posted == 0) {
		return 0;
	}
	int failed = MPI_Testsome(e->posted, e->requests, &n, e->indices, e->statuses);
	if (n == MPI_UNDEFINED || n <= 0) {
		return failed == MPI_SUCCESS ? 0 : -1;
	}
	/* From the last row on: done() moves the last one into the gap. Statuses stay with their indices. */
	int order[n];
	for (int i = 0; i < n; i++) {
		order[i] = i;
	}
	for (int i = 1; i < n; i++) {
		int k = order[i], j = i;
		for (; j > 0 && e->indices[order[j - 1]] < e->indices[k]; j--) {
			order[j] = order[j - 1];
		}
		order[j] = k;
	}
	for (int i = 0; i < n; i++) {
		int k = order[i], row = e->indices[k], got = 0;
		int error = failed == MPI_ERR_IN_STATUS ? e->statuses[k].MPI_ERROR : MPI_SUCCESS;
		if (!e->rows[row]->sends && error == MPI_SUCCESS) {
			MPI_Get_count(&e->statuses[k], MPI_BYTE, &got);
		}
		done(e, row, got, error);
	}
	return n;
}

static int64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * (int64_t)1000000000 + t.tv_nsec;
}

/* go_on_waiting is called between looks. It returns 0 when the time is over. Where the processors are crowded it gives its
   own to other threads, each time. */
int go_on_waiting(waiting *w, int64_t nanoseconds, int yields) {
	if (!yields && ++w->looks % 8 != 0) {
		return 1;
	}
	int64_t t = now();
	if (w->end == 0) {
		w->end = t + nanoseconds;
	} else if (t >= w->end) {
		return 0;
	}
	if (yields) {
		sched_yield();
	}
	return 1;
}

/* engine_poll posts what is wanted, and looks until something is done, the time is over, or the word wake is set. It
   returns how many operations are done, or -1 if MPI fails. A number in place of a pointer spares cgo's look at the
   memory behind it. */
int engine_poll(uintptr_t of, int64_t nanoseconds) {
	engine *e = (engine *)of;
	int failed = 0;
	if (e->wanted > 0) {
		int before = e->posted + e->wanted;
		post(e);
		failed = before - e->posted;
	}
	int n = look(e);
	if (failed > 0 || n != 0 || nanoseconds <= 0) {
		return n < 0 ? n : n + failed;
	}
	waiting w = {0};
	while (!e->wake && go_on_waiting(&w, nanoseconds, e->yields)) {
		if ((n = look(e)) != 0) {
			return n;
		}
	}
	return 0;
}

/* engine_cancel ends an operation: a receive that nothing has come for is cancelled, anything else is seen through. It
   returns 1 when the operation is over, else 0: then it is to be called again, after others have been heard. */
int engine_cancel(engine *e, op *o) {
	if (o->state == OP_WANTED) {
		int kept = 0;
		for (int i = 0; i < e->wanted; i++) {
			if (e->queue[i] != o) {
				e->queue[kept++] = e->queue[i];
			}
		}
		e->wanted = kept;
		o->state = OP_IDLE;
	}
	if (o->state != OP_POSTED) {
		return 1;
	}
	if (!o->sends && !o->ending) {
		MPI_Cancel(&e->requests[o->row]);
		o->ending = 1;
	}
	MPI_Status status;
	int over = 0;
	int error = MPI_Test(&e->requests[o->row], &over, &status);
	if (over || error != MPI_SUCCESS) {
		done(e, o->row, 0, error);
		return 1;
	}
	return 0;
}

int world_place(int *rank, int *size, int *tags) {
	int e, found = 0, *most = NULL;
	if ((e = MPI_Comm_rank(MPI_COMM_WORLD, rank)) || (e = MPI_Comm_size(MPI_COMM_WORLD, size)) ||
		(e = MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &found))) {
		return e;
	}
	*tags = found ? *most : 32767;
	return MPI_SUCCESS;
}

/* world_open begins to make a communicator of all processes. world_try says when it is there. */
int world_open(making *m) { return MPI_Comm_idup(MPI_COMM_WORLD, &m->comm, &m->request); }

int world_try(making *m, int *done) { return MPI_Test(&m->request, done, MPI_STATUS_IGNORE); }

int world_ready(MPI_Comm made) { return MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN); }

struct letter {
	letter *next;
	MPI_Request request;
	char bytes[];
};

/* world_tell sends a copy of a control message. sent is the list of those on their way, the newest first. */
int world_tell(world *w, int peer, const void *message, int length, letter **sent) {
	letter *l = malloc(sizeof *l + length);
	if (l == NULL) {
		return MPI_ERR_NO_MEM;
	}
	memcpy(l->bytes, message, length);
	int e = MPI_Isend(l->bytes, length, MPI_BYTE, peer, w->job, w->control, &l->request);
	if (e != MPI_SUCCESS) {
		free(l);
		return e;
	}
	l->next = *sent;
	*sent = l;
	return MPI_SUCCESS;
}

/* world_sent forgets the control messages that have gone, and says how many have not. */
int world_sent(letter **sent, int *left) {
	*left = 0;
	for (letter **at = sent; *at != NULL;) {
		letter *l = *at;
		int over = 0;
		if (MPI_Test(&l->request, &over, MPI_STATUS_IGNORE) != MPI_SUCCESS || over) {
			*at = l->next;
			free(l);
			continue;
		}
		++*left;
		at = &l->next;
	}
	return MPI_SUCCESS;
}

/* world_hear takes a control message, if one has come: length is -1 if none has. */
int world_hear(world *w, void *message, int size, int *from, int *length) {
	int any = 0, got = 0;
	MPI_Message matched;
	MPI_Status status;
	*length = -1;
	int e = MPI_Improbe(MPI_ANY_SOURCE, w->job, w->control, &any, &matched, &status);
	if (e != MPI_SUCCESS || !any) {
		return e;
	}
	MPI_Get_count(&status, MPI_BYTE, &got);
	*from = status.MPI_SOURCE;
	e = MPI_Mrecv(message, size, MPI_BYTE, &matched, &status);
	if (e == MPI_SUCCESS) {
		*length = got;
	}
	return e;
}

/* world_drain receives a message of data that nobody will want, if one has come. */
int world_drain(world *w, void *scratch, int size, int *any) {
	MPI_Message matched;
	MPI_Status status;
	*any = 0;
	int e = MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, w->data, any, &matched, &status);
	if (e == MPI_SUCCESS && *any) {
		e = MPI_Mrecv(scratch, size, MPI_BYTE, &matched, &status);
	}
	return e;
}

int world_leave(world *w, MPI_Request *request) { return MPI_Ibarrier(w->control, request); }
int world_left(MPI_Request *request, int *done) { return MPI_Test(request, done, MPI_STATUS_IGNORE); }

void error_text(int error, char *text, int size) {
	char name[MPI_MAX_ERROR_STRING];
	int length = 0;
	if (MPI_Error_string(error, name, &length) != MPI_SUCCESS) {
		strcpy(name, "an error that it has no text for");
	}
	strncpy(text, name, size - 1);
	text[size - 1] = 0;
}
