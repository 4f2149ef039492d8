#define _GNU_SOURCE
#include "python.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "process.h"

bool ek_python_started;

/* ---- what Python offers, and where mpi4py is ----------------------------- */

/* Python's objects, of which we know no more than that. */
typedef void object;

static struct {
	int (*Py_IsInitialized)(void);
	int (*PyGILState_Ensure)(void);
	void (*PyGILState_Release)(int);
	char *(*PyGILState_GetThisThreadState)(void);
	object *(*PyThreadState_GetFrame)(char *state);
	object *(*PyFrame_GetCode)(object *frame);
	int (*PyFrame_GetLineNumber)(object *frame);
	object *(*PyObject_GetAttrString)(object *, const char *);
	long (*PyLong_AsLong)(object *);
	const char *(*PyUnicode_AsUTF8)(object *);
	void (*PyErr_Clear)(void);
	void (*Py_DecRef)(object *);
	const char *(*Py_GetVersion)(void);
} python;

static bool find_python(void)
{
	const struct {
		const char *name;
		void *place;
	} symbols[] = {
#define SYMBOL(name) {#name, &python.name}
		SYMBOL(Py_IsInitialized), SYMBOL(PyGILState_Ensure), SYMBOL(PyGILState_Release),
		SYMBOL(PyGILState_GetThisThreadState), SYMBOL(PyThreadState_GetFrame), SYMBOL(PyFrame_GetCode),
		SYMBOL(PyFrame_GetLineNumber), SYMBOL(PyObject_GetAttrString), SYMBOL(PyLong_AsLong),
		SYMBOL(PyUnicode_AsUTF8), SYMBOL(PyErr_Clear), SYMBOL(Py_DecRef), SYMBOL(Py_GetVersion),
#undef SYMBOL
	};
	for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
		void *found = dlsym(RTLD_DEFAULT, symbols[i].name);
		if (!found)
			return false;
		memcpy(symbols[i].place, &found, sizeof found);
	}
	return python.Py_IsInitialized();
}

static struct {
	uint64_t begin, length;
} mpi4py;

static int is_mpi4py(struct dl_phdr_info *module, size_t size, void *data)
{
	(void)size, (void)data;
	if (!strstr(module->dlpi_name, "/mpi4py/MPI."))
		return 0;
	for (int i = 0; i < module->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &module->dlpi_phdr[i];
		if (part->p_type == PT_LOAD && part->p_flags & PF_X) {
			mpi4py.begin = module->dlpi_addr + part->p_vaddr;
			mpi4py.length = part->p_memsz;
		}
	}
	return 1;
}

/* ---- frames -------------------------------------------------------------- */

/* Since 3.11 a frame knows the address of its instruction; Python's frame object is
 * made for who asks for it, and says where the frame is. */
enum {
	WORD = 8,
	STATE = 32 * WORD,   /* in so much of a thread's state its frame is looked for */
	FRAME_AT = 3 * WORD, /* in the object */
	PLACE_AT = 7 * WORD, /* in the frame */
	CODE_MOST = 512,     /* bytes before the instructions in their code object */
	/* Before, the object was the frame, and knew its code and how far in that it was. */
	OLD_CODE_AT = 4 * WORD
};

static struct {
	int at;     /* where a thread's state has its frame, or what points to it, */
	int behind; /* and where that does; -1: nothing lies between */
	int reached; /* of an old frame: how far in its code it is; 0: it is none */
} frames;

/* Asks the kernel, so that a guess that is wrong does no harm. */
static bool read_word(uint64_t address, uint64_t *word)
{
	struct iovec from = {(void *)(uintptr_t)address, sizeof *word}, to = {word, sizeof *word};
	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == sizeof *word;
}

static bool find_in_state(uint64_t state, uint64_t frame)
{
	uint64_t word, next;
	for (frames.at = 0; frames.at < STATE && read_word(state + (uint64_t)frames.at, &word); frames.at += WORD) {
		frames.behind = -1;
		if (word == frame)
			return true;
		for (frames.behind = 0; frames.behind <= WORD; frames.behind += WORD)
			if (read_word(word + (uint64_t)frames.behind, &next) && next == frame)
				return true;
	}
	return false;
}

static bool is_frame(uint64_t shown, uint64_t code, uint64_t last, uint64_t *frame)
{
	uint64_t place;
	return read_word(shown + FRAME_AT, frame) && read_word(*frame + PLACE_AT, &place) && place > code + last &&
	       place < code + last + CODE_MOST;
}

static bool is_old_frame(uint64_t shown, uint64_t code, uint64_t last)
{
	uint64_t its_code, word, unit = 1;
	frames.reached = 0;
	if (strncmp(python.Py_GetVersion(), "3.9.", 4) == 0) {
		frames.reached = 13 * WORD;
	} else if (strncmp(python.Py_GetVersion(), "3.10.", 5) == 0) {
		frames.reached = 12 * WORD;
		unit = 2;
	}
	return frames.reached && read_word(shown + OLD_CODE_AT, &its_code) && its_code == code &&
	       read_word(shown + (uint64_t)frames.reached, &word) && (uint32_t)word * unit == last;
}

static long number_of(object *owner, const char *name)
{
	object *attribute = python.PyObject_GetAttrString(owner, name);
	long number = attribute ? python.PyLong_AsLong(attribute) : -1;
	python.Py_DecRef(attribute);
	python.PyErr_Clear();
	return number;
}

static bool find_frames(void)
{
	char *state = python.PyGILState_GetThisThreadState();
	object *shown = state ? python.PyThreadState_GetFrame(state) : 0;
	if (!shown)
		return false;
	object *code = python.PyFrame_GetCode(shown);
	long last = number_of(shown, "f_lasti");
	uint64_t frame = (uint64_t)(uintptr_t)shown, at = (uint64_t)(uintptr_t)code;
	bool found = last >= 0 && (is_old_frame(frame, at, (uint64_t)last) || is_frame(frame, at, (uint64_t)last, &frame)) &&
	             find_in_state((uint64_t)(uintptr_t)state, frame);
	python.Py_DecRef(code);
	python.Py_DecRef(shown);
	return found;
}

void ek_python_start(void)
{
	if (!find_python() || !dl_iterate_phdr(is_mpi4py, 0))
		return;
	int lock = python.PyGILState_Ensure();
	ek_python_started = find_frames();
	python.PyGILState_Release(lock);
}

/* ---- places -------------------------------------------------------------- */

/* Where a thread is; 0: in no frame. Addresses of today's processors leave room for how
 * far an old frame is in its code. */
static inline uint64_t place_of(const char *state)
{
	const char *frame = *(const char *const *)(state + frames.at);
	if (frame && frames.behind >= 0)
		frame = *(const char *const *)(frame + frames.behind);
	if (!frame)
		return 0;
	if (frames.reached)
		return *(const uint64_t *)(frame + OLD_CODE_AT) ^ (uint64_t)*(const uint32_t *)(frame + frames.reached) << 48;
	return *(const uint64_t *)(frame + PLACE_AT);
}

uint64_t ek_python_site(uint64_t address)
{
	if (address - mpi4py.begin >= mpi4py.length)
		return address;
	const char *state = python.PyGILState_GetThisThreadState();
	uint64_t place = state ? place_of(state) : 0; /* a thread that Python does not know, or it is about to end */
	return place ? place : address;
}

static void put_name(char *name, size_t size, object *file, object *function)
{
	const char *path = file ? python.PyUnicode_AsUTF8(file) : 0;
	const char *called = function ? python.PyUnicode_AsUTF8(function) : 0;
	if (!path || !called || (size_t)snprintf(name, size, "%s::%s", path, called) < size)
		return;
	const char *base = strrchr(path, '/'); /* too long: the end of it at least */
	snprintf(name, size, "%s::%s", base ? base + 1 : path, called);
}

bool ek_python_name(uint64_t place, char *name, size_t size, uint64_t *line)
{
	name[0] = 0;
	if (!ek_python_started || !python.Py_IsInitialized())
		return false;
	int lock = python.PyGILState_Ensure();
	char *state = python.PyGILState_GetThisThreadState();
	object *shown = python.PyThreadState_GetFrame(state);
	object *code = shown ? python.PyFrame_GetCode(shown) : 0;
	if (code && place_of(state) == place) {
		object *file = python.PyObject_GetAttrString(code, "co_filename");
		object *function = python.PyObject_GetAttrString(code, "co_qualname"); /* not before 3.11 */
		if (!function)
			function = python.PyObject_GetAttrString(code, "co_name");
		put_name(name, size, file, function);
		*line = (uint64_t)python.PyFrame_GetLineNumber(shown);
		python.Py_DecRef(file);
		python.Py_DecRef(function);
		python.PyErr_Clear();
	}
	python.Py_DecRef(code);
	python.Py_DecRef(shown);
	python.PyGILState_Release(lock);
	return name[0] != 0;
}
