package audit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
)

// File is an Out that appends to a file. A file that reaches its size bound is renamed with the
// suffix ".1", and a new one begins. The previous ".1" becomes ".2", and so on up to filesMax; the
// oldest is deleted. Its methods must not be called concurrently.
type File struct {
	path     string
	bytesMax int64
	file     *os.File // nil if the last try to open it failed
	size     int64
	torn     bool // the last write ended within a line
	regular  bool // not a pipe or a device
}

// filesMax is how many rotated files are kept.
const filesMax = 4

// rotated returns the name of a rotated file: 1 is the latest.
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

// endsWithin reports whether a file of size bytes ends within a line, which a killed process can
// cause.
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

// Reopen closes the file and opens the file that has its name now.
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
