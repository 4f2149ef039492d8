// classes.cc - call sites in C++: methods, templates, lambdas, constructors.
#include "probe.h"

static volatile int zero;

namespace mesh {
namespace {
__attribute__((noinline)) int local()
{
	return PROBE("mesh::(anonymous namespace)::local", "", "") + zero;
}
} // namespace

class Halo {
public:
	explicit Halo(int n);
	int exchange(double width) const;
	__attribute__((always_inline)) int corner(const char *inlined) const
	{
		return PROBE("mesh::Halo::corner", inlined, "") + zero;
	}
	template <typename T> __attribute__((noinline)) int send(T value) const
	{
		return PROBE(sizeof(value) == 8 ? "mesh::Halo::send<double>" : "mesh::Halo::send<int>", "", "") + zero;
	}

private:
	int size;
};

__attribute__((noinline)) Halo::Halo(int n) : size(n)
{
	size += PROBE("mesh::Halo::Halo", "", "") + zero;
}

__attribute__((noinline)) int Halo::exchange(double width) const
{
	return PROBE("mesh::Halo::exchange", "", "") + int(width) * size * zero;
}
} // namespace mesh

template <typename F> __attribute__((noinline)) int apply(F f)
{
	return f() + zero;
}

int main()
{
	mesh::Halo halo(1);
	int result = mesh::local();
	result += halo.exchange(1.0);
	result += halo.send(1);
	result += halo.send(1.0);
	result += apply([]() __attribute__((noinline)) {
		return PROBE("main::{lambda()#1}::operator()", "", "") + zero;
	});
	result += halo.corner(HERE("main"));
	return result;
}
