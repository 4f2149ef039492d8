// calls.cc - MPI calls from C++: from a template, a lambda, a class and a
// namespace, with exceptions about; prints how often each was made.
//
//	mpirun -np 4 calls_cc
#include "counted.h"

#include <numeric>
#include <stdexcept>
#include <vector>

namespace ring {

// The member functions exchange values with both neighbours.
class Neighbours {
public:
	explicit Neighbours(MPI_Comm comm)
	{
		CALL(MPI_Comm_dup, comm, &comm_);
		MPI_Comm_rank(comm_, &rank_);
		MPI_Comm_size(comm_, &size_);
	}
	Neighbours(const Neighbours &) = delete;
	Neighbours &operator=(const Neighbours &) = delete;
	~Neighbours()
	{
		CALL(MPI_Comm_free, &comm_);
	}

	template <typename T> T shift(T value, MPI_Datatype type) const
	{
		T got{};
		MPI_Request requests[2];

		CALL(MPI_Irecv, &got, 1, type, (rank_ + size_ - 1) % size_, 0, comm_, &requests[0]);
		CALL(MPI_Isend, &value, 1, type, (rank_ + 1) % size_, 0, comm_, &requests[1]);
		CALL(MPI_Waitall, 2, requests, MPI_STATUSES_IGNORE);
		return got;
	}

	int left() const
	{
		return (rank_ + size_ - 1) % size_;
	}

	int size() const
	{
		return size_;
	}

private:
	MPI_Comm comm_ = MPI_COMM_NULL;
	int rank_ = 0, size_ = 0;
};

} // namespace ring

int main(int argc, char **argv)
{
	int rank;

	CALL(MPI_Init, &argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	try {
		ring::Neighbours neighbours(MPI_COMM_WORLD);
		std::vector<int> all(static_cast<std::size_t>(neighbours.size()));
		auto gather = [&all](int value) {
			CALL(MPI_Allgather, &value, 1, MPI_INT, all.data(), 1, MPI_INT, MPI_COMM_WORLD);
		};

		EXPECT(neighbours.shift<int>(rank, MPI_INT) == neighbours.left());
		EXPECT(neighbours.shift<double>(rank / 2.0, MPI_DOUBLE) == neighbours.left() / 2.0);
		gather(rank);
		EXPECT(std::accumulate(all.begin(), all.end(), 0) ==
		       neighbours.size() * (neighbours.size() - 1) / 2);
		throw std::runtime_error("leaves the block through its destructors");
	} catch (const std::runtime_error &) {
		CALL(MPI_Barrier, MPI_COMM_WORLD);
	}
	counted_finalize();
	return 0;
}
