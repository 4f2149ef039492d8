package profile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// files are the names in a directory.
func files(t *testing.T, directory string) []string {
	t.Helper()
	entries, err := os.ReadDir(directory)
	require.NoError(t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// full mounts a file system with room for 16 KiB.
func full(t *testing.T) string {
	t.Helper()
	directory := t.TempDir()
	if err := syscall.Mount("tmpfs", directory, "tmpfs", 0, "size=16k"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("cannot mount a small disk: %v", err)
		}
		t.Skipf("cannot mount a small disk, which needs root: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(directory, 0)) })
	return directory
}

func TestReplaceKeepsTheOldFileOnAFullDisk(t *testing.T) {
	directory := full(t)
	path := filepath.Join(directory, "profile.json")
	p := example()
	require.NoError(t, Write(path, p))
	p.Command = strings.Repeat("x", 64<<10)
	err := Write(path, p)
	assert.ErrorContains(t, err, path)
	assert.ErrorIs(t, err, syscall.ENOSPC)
	assert.Equal(t, []string{"profile.json"}, files(t, directory))
	old, err := Read(path)
	require.NoError(t, err)
	assert.Equal(t, example(), old)
}

func TestReplaceLeavesNothingBehindOnFailure(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "page.html")
	err := Replace(path, func(w io.Writer) error {
		_, err := io.WriteString(w, "half")
		require.NoError(t, err)
		return errors.New("no more")
	})
	assert.EqualError(t, err, "cannot write "+path+": no more")
	assert.Empty(t, files(t, directory))
}

func TestReplaceNamesADirectoryThatIsMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", "profile.json")
	assert.ErrorContains(t, Write(path, example()), path)
}

func TestReplaceDoesNotReplaceADirectory(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "profile.json")
	require.NoError(t, os.Mkdir(path, 0o755))
	assert.EqualError(t, Write(path, example()), "cannot write "+path+": it is a directory; name a file in it")
	assert.Equal(t, []string{"profile.json"}, files(t, directory))
}

// As root, a rename would put a file in the place of the system's device.
func TestReplaceWritesIntoWhatIsNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	read := make(chan string)
	go func() {
		text, _ := os.ReadFile(path)
		read <- string(text)
	}()
	require.NoError(t, Replace(path, func(w io.Writer) error {
		_, err := io.WriteString(w, "through the pipe")
		return err
	}))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.ModeNamedPipe, info.Mode().Type(), "it is a pipe still")
	assert.Equal(t, "through the pipe", <-read)
}

func TestReplaceKeepsALink(t *testing.T) {
	directory := t.TempDir()
	file, link := filepath.Join(directory, "file"), filepath.Join(directory, "link")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Symlink("file", link))
	require.NoError(t, Write(link, example()))
	p, err := Read(file)
	require.NoError(t, err)
	assert.Equal(t, example(), p)
	assert.Equal(t, []string{"file", "link"}, files(t, directory))
}
