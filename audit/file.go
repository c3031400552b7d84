package audit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
)

// File is an Out that appends to a file. When the file reaches its maximum size, it gets the suffix
// ".1", and a new file begins. The previous ".1" becomes ".2", and so on up to filesMax. The oldest
// file is deleted. The methods of a File must not be called concurrently.
type File struct {
	path     string
	bytesMax int64
	file     *os.File // nil if the last attempt to open it failed
	size     int64
	torn     bool // the last write ended in the middle of a line
	regular  bool // not a pipe or a device
}

// filesMax is the number of rotated files that are kept.
const filesMax = 4

// rotated returns the name of the rotated file with this number. Number 1 is the latest.
func (f *File) rotated(number int) string { return f.path + "." + strconv.Itoa(number) }

// OpenFile opens the file at path. If there is no file, it creates one that only its owner can
// read. The file is rotated before it gets longer than bytesMax.
func OpenFile(path string, bytesMax int64) (*File, error) {
	f := &File{path: path, bytesMax: bytesMax}
	return f, f.open()
}

func (f *File) open() error {
	opened, err := os.OpenFile(f.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open the audit log: %w", err)
	}
	info, err := opened.Stat()
	if err != nil {
		_ = opened.Close()
		return fmt.Errorf("look at the audit log: %w", err)
	}
	f.file, f.size, f.torn, f.regular = opened, 0, false, info.Mode().IsRegular()
	if f.regular {
		f.size, f.torn = info.Size(), endsWithin(f.path, info.Size())
	}
	return nil
}

// endsWithin reports whether a file of size bytes ends in the middle of a line. That happens if a
// process was killed while it wrote.
func endsWithin(path string, size int64) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	var last [1]byte
	_, err = file.ReadAt(last[:], max(0, size-1))
	return err == nil && last[0] != '\n'
}

// Write appends lines.
func (f *File) Write(lines []byte) (int, error) {
	if f.file == nil {
		if err := f.open(); err != nil {
			return 0, err
		}
	}
	if f.size > 0 && f.size+int64(len(lines)) > f.bytesMax {
		if err := f.rotate(); err != nil {
			return 0, err
		}
	}
	if f.torn {
		n, err := f.file.Write([]byte{'\n'})
		f.size += int64(n)
		if err != nil {
			return 0, err
		}
		f.torn = false
	}
	n, err := f.file.Write(lines)
	f.size += int64(n)
	f.torn = n > 0 && lines[n-1] != '\n'
	return n, err
}

func (f *File) rotate() error {
	for number := filesMax; number > 0; number-- {
		from := f.path
		if number > 1 {
			from = f.rotated(number - 1)
		}
		if err := os.Rename(from, f.rotated(number)); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("rotate the audit log: %w", err)
		}
	}
	return f.Reopen()
}

// Reopen closes the file, and opens the file that now has the same name.
func (f *File) Reopen() error {
	before := f.file
	if err := f.open(); err != nil {
		return err
	}
	if before == nil {
		return nil
	}
	return before.Close()
}

// Close syncs the file and closes it.
func (f *File) Close() error {
	if f.file == nil {
		return nil
	}
	var synced error
	if f.regular {
		synced = f.file.Sync()
	}
	closed := f.file.Close()
	f.file = nil
	return errors.Join(synced, closed)
}

// Stream returns an Out that writes to w. It never closes w.
func Stream(w io.Writer) Out { return stream{w} }

type stream struct{ io.Writer }

func (stream) Reopen() error { return nil }
func (stream) Close() error  { return nil }
