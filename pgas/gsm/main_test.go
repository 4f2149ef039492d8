package gsm_test

import (
	"os"
	"testing"

	"evenkeel/mpi/mpitest"
)

func TestMain(m *testing.M) { os.Exit(mpitest.Run(m, 1, 2, 4)) }
