# evenkeel: make run | test | bench | install. Everything is built into build/.

BUILD  := $(CURDIR)/build
PREFIX ?= /usr/local
CC     ?= gcc
GO     ?= go
FC      = gfortran

MPI_CFLAGS  = $(shell pkg-config --cflags ompi-c 2>/dev/null)
CFLAGS     ?= -O2 -g
EK_CFLAGS   = -std=gnu11 -fPIC -fvisibility=hidden -Wall -Wextra -Werror \
              -Wno-cast-function-type -Wno-format-truncation -Ic -I$(BUILD)/gen $(MPI_CFLAGS)

C_SOURCES   = $(wildcard c/*.c)
GEN_SOURCES = $(addprefix $(BUILD)/gen/,wrappers_c.c wrappers_fortran.c ek_functions_next.c)
C_OBJECTS   = $(patsubst c/%.c,$(BUILD)/obj/%.o,$(C_SOURCES)) \
              $(patsubst $(BUILD)/gen/%.c,$(BUILD)/obj/%.o,$(GEN_SOURCES))
GEN_STAMP   = $(BUILD)/gen/.made
GO_SOURCES  = $(shell find balancer c mpi pgas runtime shim cmd -name '*.go' -o -name '*.table' -o -name '*.c' -o -name '*.h' 2>/dev/null)
VERSION    := 0.1.0

# As many jobs as there are cores.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif

# mpirun refuses to start as root unless it is told twice.
ifeq ($(shell id -u),0)
export OMPI_ALLOW_RUN_AS_ROOT = 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM = 1
endif

.PHONY: all run test check bench install uninstall generate examples programs packages-run packages-test clean

all: $(BUILD)/lib/libevenkeel.so $(BUILD)/lib/libevenkeel-openmp.so $(BUILD)/lib/libevenkeel-runtime.so $(BUILD)/bin/evenkeel

# The module for Fortran programs, for those who have a compiler for it: a module fits the compiler that made it.
.PHONY: fortran
fortran: $(BUILD)/lib/libevenkeel-fortran.a

# An unmodified MPI program with uneven work, under evenkeel.
run: packages-run
	@$(MAKE) --no-print-directory all
	@$(MAKE) --no-print-directory -C examples BUILD=$(BUILD) $(BUILD)/examples/nbody
	@rm -rf $(BUILD)/run
	mpirun -np 4 --oversubscribe $(BUILD)/bin/evenkeel run --out $(BUILD)/run $(BUILD)/examples/nbody
	@echo
	@echo "The whole report: build/bin/evenkeel report build/run"

test: packages-test
	@$(MAKE) --no-print-directory all examples programs
	scripts/test

bench: packages-test
	@$(MAKE) --no-print-directory all examples programs
	$(MAKE) -C bench BUILD=$(BUILD)
	$(GO) run ./bench -write

packages-run:
	@scripts/packages run

packages-test:
	@scripts/packages test

examples: all fortran
	@$(MAKE) --no-print-directory -C examples BUILD=$(BUILD)
	$(GO) build -o $(BUILD)/examples/fractal ./examples/go/fractal

programs: all fortran
	@$(MAKE) --no-print-directory -C tests/programs BUILD=$(BUILD)

# Go types from c/segment.h, and the settings' page.
generate:
	$(GO) generate ./runtime/...

$(GEN_STAMP): $(wildcard c/gen/*.go c/tables/*)
	$(GO) run ./c/gen -out $(BUILD)/gen
	@touch $@

$(GEN_SOURCES): $(GEN_STAMP) ;

# Loops of a few instructions, which depend on where they begin.
$(BUILD)/obj/kernels.o: EK_CFLAGS += -falign-loops=64

$(BUILD)/obj/%.o: c/%.c $(GEN_STAMP) $(wildcard c/*.h)
	@mkdir -p $(@D)
	$(CC) $(EK_CFLAGS) $(CFLAGS) -c $< -o $@

$(BUILD)/obj/%.o: $(BUILD)/gen/%.c $(GEN_STAMP) $(wildcard c/*.h)
	@mkdir -p $(@D)
	$(CC) $(EK_CFLAGS) $(CFLAGS) -c $< -o $@

$(BUILD)/lib/libevenkeel.so: $(C_OBJECTS)
	@mkdir -p $(@D)
	$(CC) -shared -Wl,-z,defs -Wl,-soname,libevenkeel.so -o $@ $^ $(LDFLAGS) -ldl -lpthread

$(BUILD)/lib/libevenkeel-openmp.so: c/openmp/openmp.c
	@mkdir -p $(@D)
	$(CC) $(EK_CFLAGS) $(CFLAGS) -shared -Wl,-soname,libevenkeel-openmp.so -o $@ $< $(LDFLAGS) -ldl

$(BUILD)/lib/libevenkeel-runtime.so: $(GO_SOURCES) go.mod go.sum
	@mkdir -p $(@D)
	$(GO) build -buildmode=c-shared -ldflags '-X runtime.godebugDefault=asyncpreemptoff=1' -o $@ ./shim
	@rm -f $(BUILD)/lib/libevenkeel-runtime.h

$(BUILD)/bin/evenkeel: $(GO_SOURCES) go.mod go.sum
	@mkdir -p $(@D)
	$(GO) build -ldflags '-X main.version=$(VERSION)' -o $@ ./cmd/evenkeel

# One object, so that a program that has the procedures also tells where they are.
$(BUILD)/lib/libevenkeel-fortran.a: fortran/evenkeel.F90 fortran/pointers.inc fortran/procedures.c
	@mkdir -p $(@D) $(BUILD)/fortran
	$(FC) -cpp -Wall -Werror -O2 -g -fPIC -fno-omit-frame-pointer -fno-optimize-sibling-calls -J $(BUILD)/fortran \
		-c $< -o $(BUILD)/fortran/module.o
	objcopy --rename-section .text=ek_fortran $(BUILD)/fortran/module.o
	$(CC) -Wall -Wextra -Werror -O2 -fPIC -c fortran/procedures.c -o $(BUILD)/fortran/procedures.o
	$(LD) -r -o $(BUILD)/fortran/evenkeel.o $(BUILD)/fortran/module.o $(BUILD)/fortran/procedures.o
	rm -f $@ && $(AR) rcs $@ $(BUILD)/fortran/evenkeel.o

# Where the documentation is installed, and what makes its links fit: pages are beside each other there, headers in
# include; what is not installed is named without a link.
DOCUMENTS = $(PREFIX)/share/doc/evenkeel
INSTALLED_LINKS = -e 's|\[docs/|[|g' -e 's|](docs/|](|g' -e 's|](\.\./README|](README|g' \
	-e 's|](\(\.\./\)\?c/\(evenkeel[a-z_]*\.h\))|](../../../include/\2)|g' \
	-e 's|\[\([^]]*\)\](\(\.\./\)\?\([a-z][^):]*/[^):]*\))|\1 (\3 in the sources)|g'

install: all $(if $(shell command -v $(FC)),fortran)
	install -d $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/include \
		$(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(DOCUMENTS)
	install -m 755 $(BUILD)/lib/libevenkeel.so $(BUILD)/lib/libevenkeel-openmp.so $(BUILD)/lib/libevenkeel-runtime.so $(DESTDIR)$(PREFIX)/lib
	install -m 755 $(BUILD)/bin/evenkeel $(DESTDIR)$(PREFIX)/bin
	install -m 644 c/evenkeel.h c/evenkeel_result.h c/evenkeel_gsm.h c/evenkeel_shared.h c/evenkeel_affinity.h \
		$(DESTDIR)$(PREFIX)/include
	if [ -e $(BUILD)/fortran/evenkeel.mod ]; then \
		install -m 644 $(BUILD)/fortran/evenkeel.mod $(DESTDIR)$(PREFIX)/include; \
		install -m 644 $(BUILD)/lib/libevenkeel-fortran.a $(DESTDIR)$(PREFIX)/lib; \
	fi
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' c/evenkeel.pc.in \
		> $(DESTDIR)$(PREFIX)/lib/pkgconfig/evenkeel.pc
	$(BUILD)/bin/evenkeel man $(DESTDIR)$(PREFIX)/share/man/man1 $(DOCUMENTS)
	for page in README.md docs/*.md; do \
		sed $(INSTALLED_LINKS) $$page > $(DESTDIR)$(DOCUMENTS)/$${page##*/} || exit 1; \
	done
	install -m 644 LICENSE $(DESTDIR)$(DOCUMENTS)

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/lib/libevenkeel.so $(DESTDIR)$(PREFIX)/lib/libevenkeel-openmp.so \
		$(DESTDIR)$(PREFIX)/lib/libevenkeel-runtime.so $(DESTDIR)$(PREFIX)/lib/libevenkeel-fortran.a \
		$(DESTDIR)$(PREFIX)/lib/pkgconfig/evenkeel.pc $(DESTDIR)$(PREFIX)/bin/evenkeel \
		$(addprefix $(DESTDIR)$(PREFIX)/include/,evenkeel.h evenkeel_result.h evenkeel_gsm.h evenkeel_shared.h \
		evenkeel_affinity.h evenkeel.mod) \
		$(DESTDIR)$(PREFIX)/share/man/man1/evenkeel.1 $(DESTDIR)$(PREFIX)/share/man/man1/evenkeel-*.1
	rm -rf $(DESTDIR)$(DOCUMENTS)

clean:
	rm -rf $(BUILD)
