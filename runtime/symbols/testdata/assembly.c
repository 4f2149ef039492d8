/* assembly.c - calls assembly.S with what stands there. */
#include <stddef.h>

int from_assembly(const char *file, const int *line, const char *function, size_t file_length, size_t function_length);

int main(void)
{
	const int line = 8;
	static const char file[] = "assembly.S", function[] = "from_assembly";

	return from_assembly(file, &line, function, sizeof(file) - 1, sizeof(function) - 1);
}
