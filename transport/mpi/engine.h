//go:build mpi

#ifndef GOGCL_MPI_ENGINE_H
#define GOGCL_MPI_ENGINE_H

#if __has_include(<mpi.h>)
#include <mpi.h>
#elif __has_include(<mpi/mpi.h>) /* where Debian's alternative "mpi" points */
#include <mpi/mpi.h>
#else
#error "gogcl.dev/transport/mpi found no mpi.h. Install an MPI library with its headers (Debian: apt-get install libopenmpi-dev, or libmpich-dev), or say where they are: CGO_CFLAGS=\"$(pkg-config --cflags ompi)\" CGO_LDFLAGS=\"$(pkg-config --libs ompi)\" go build -tags mpi; mpicc -show prints them too. Without the tag mpi replicas are joined by sockets."
#endif

#include <stdint.h>

/* The states of an operation. */
enum { OP_IDLE, OP_WANTED, OP_POSTED, OP_DONE };

/* op is one send or receive. Go fills it in while it is idle or done; engine_poll posts it and says when it is done.
   Addresses are numbers: the Go memory behind them is pinned, and Go writes no pointer into C memory. */
typedef struct op {
	int state;
	int sends;    /* else it receives */
	int peer;     /* rank in the world */
	int tag;
	uintptr_t at;
	int size;     /* bytes to send, or that may come */
	int got;      /* done: bytes that have come */
	int error;    /* done: an error of MPI, or MPI_SUCCESS */
	int row;      /* posted: its row in the engine */
	int ending;   /* posted: engine_cancel has been called */
	MPI_Request request;
} op;

/* waiting is the time between looks for progress. */
typedef struct waiting {
	int looks;
	int64_t end;
} waiting;

int go_on_waiting(waiting *p, int64_t nanoseconds, int yields);

/* engine is the operations of one lane. Only one thread at a time uses it, but for the word wake. */
typedef struct engine {
	MPI_Comm comm;
	int cap, wanted, posted;
	op **queue;             /* those that are wanted, in order */
	op **rows;              /* those that are posted */
	MPI_Request *requests;  /* of rows */
	MPI_Status *statuses;
	int *indices;
	volatile uint32_t wake; /* not 0: engine_poll returns at once */
	int yields;             /* the processor is given away after each look */
} engine;

/* world is what a job goes over. Control messages have the job's number as their tag. */
typedef struct world {
	MPI_Comm data, control;
	int job;
} world;

/* making is a communicator that is being made. */
typedef struct making {
	MPI_Comm comm;
	MPI_Request request;
} making;

/* letter is a control message on its way. */
typedef struct letter letter;

int engine_init(int *provided, char *library, int size);
int engine_finalize(void);
const char *engine_header(void);

engine *engine_new(MPI_Comm comm);
void engine_free(engine *e);
int engine_want(engine *e, op *o);
int engine_poll(uintptr_t of, int64_t nanoseconds);
int engine_cancel(engine *e, op *o);

int world_place(int *rank, int *size, int *tags);
int world_open(making *m);
int world_try(making *m, int *done);
int world_ready(MPI_Comm made);
int world_tell(world *w, int peer, const void *message, int length, letter **sent);
int world_sent(letter **sent, int *left);
int world_hear(world *w, void *message, int size, int *from, int *length);
int world_drain(world *w, void *scratch, int size, int *any);
int world_leave(world *w, MPI_Request *request);
int world_left(MPI_Request *request, int *done);
void error_text(int error, char *text, int size);

#endif
