// Package pgserver starts a PostgreSQL server for tests: a real one, on a free port of 127.0.0.1,
// with its files in a temporary folder.
//
// It does not know what the tests store in the server.
package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"moorage/internal/worker"
	"moorage/testkit/loopback"
)

const (
	// startTimeout is the maximum time from a start until the server answers. Only a server that
	// hangs takes longer.
	startTimeout = 3 * time.Minute
	// startsMax is the maximum number of tries of a start. If the server ends by itself, the next
	// try uses another port.
	startsMax = 3
	// options are part of all connection strings. Opening a connection takes 60 seconds only if
	// something hangs.
	options = "sslmode=disable&connect_timeout=60"
)

// Server is a running PostgreSQL server. It is safe for concurrent use, except for Kill, Restart
// and Stop.
type Server struct {
	port    int
	folder  string
	binary  string // the folder with the server's programs
	owner   *syscall.Credential
	process *exec.Cmd
	extra   []string
}

// Start starts a server with settings (name=value), which are added to this package's settings.
// Start looks for the server's programs in Debian's folder, then in PATH. Stop it with Stop.
func Start(settings ...string) (*Server, error) {
	binary, err := findPrograms()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "moorage-pg-")
	if err != nil {
		return nil, err
	}
	s := &Server{folder: folder, binary: binary, extra: settings}
	if err := s.begin(s.fill); err != nil {
		return nil, err
	}
	return s, nil
}

// fill creates the files of an empty database. Because initdb takes a second of processor time,
// fill reuses a copy of its files for other servers. The copy is in .cache of the repository, if
// the test is in one.
func (s *Server) fill() error {
	kept := s.keptFiles()
	if kept != "" && run(exec.Command("cp", "-a", kept, s.data())) == nil {
		return nil
	}
	if err := os.RemoveAll(s.data()); err != nil {
		return err
	}
	err := run(s.command("initdb", "--pgdata", s.data(), "--auth=trust", "--username=moorage", "--encoding=UTF8",
		"--locale=C", "--no-sync"))
	if err != nil || kept == "" {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(kept), 0o777); err != nil {
		return err
	}
	made, err := os.MkdirTemp(filepath.Dir(kept), "making-")
	if err != nil {
		return err
	}
	whole := filepath.Join(made, "data")
	err = run(exec.Command("cp", "-a", s.data(), whole))
	if err == nil {
		_ = os.Rename(whole, kept) // it fails if another process was faster
	}
	return errors.Join(err, os.RemoveAll(made))
}

// keptFiles returns the folder for the files that this initdb creates for this user. Outside of a
// repository, it returns "".
func (s *Server) keptFiles() string {
	program, err := os.Stat(filepath.Join(s.binary, "initdb"))
	if err != nil {
		return ""
	}
	name := fmt.Sprintf("%d-%d", program.ModTime().Unix(), os.Geteuid())
	folder, err := os.Getwd()
	for ; err == nil && folder != "/"; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return filepath.Join(folder, ".cache", "initdb", name)
		}
	}
	return ""
}

// run runs a command. Its error contains the command's output.
func run(command *exec.Cmd) error {
	out, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(command.Path), err, out)
	}
	return nil
}

// begin prepares the folder, makes fill create the server's files, and starts the server. After an
// error it leaves nothing behind.
func (s *Server) begin(fill func() error) error {
	err := s.prepare()
	if err == nil {
		err = fill()
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(s.folder))
	}
	if err := launch(&s.port, s); err != nil {
		return errors.Join(err, s.Stop())
	}
	return nil
}

// launch starts a server on a free port. If another process takes the port first, it tries another
// port.
func launch(port *int, server interface {
	Restart() error
	Kill() error
}) (err error) {
	for range startsMax {
		if *port, err = loopback.FreePort(); err != nil {
			return err
		}
		if err = server.Restart(); !errors.Is(err, errEnded) {
			return err
		}
		_ = server.Kill() // the server has ended
	}
	return err
}

// findPrograms returns the folder of initdb and postgres, of the newest installed version.
func findPrograms() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", err
	}
	if len(found) > 0 {
		slices.Sort(found)
		return filepath.Dir(found[len(found)-1]), nil
	}
	path, err := exec.LookPath("initdb")
	if err != nil {
		return "", fmt.Errorf("PostgreSQL is not installed: %w", err)
	}
	return filepath.Dir(path), nil
}

// prepare sets the user of the server.
func (s *Server) prepare() (err error) {
	s.owner, err = own(s.folder)
	return err
}

// own gives folder to the user of the servers, and returns the user. Servers refuse to run as root;
// in that case, they run as "postgres".
func own(folder string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	owner, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("the server cannot run as root: %w", err)
	}
	uid, uidErr := strconv.ParseUint(owner.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(owner.Gid, 10, 32)
	if err := errors.Join(uidErr, gidErr, os.Chown(folder, int(uid), int(gid))); err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

func (s *Server) data() string { return filepath.Join(s.folder, "data") }

func (s *Server) command(name string, args ...string) *exec.Cmd {
	command := exec.Command(filepath.Join(s.binary, name), args...)
	command.Dir = s.folder
	command.SysProcAttr = &syscall.SysProcAttr{Credential: s.owner, Pdeathsig: syscall.SIGKILL}
	return command
}

// Restart starts the server again on its files and its port, for example after Kill, and waits
// until it answers.
func (s *Server) Restart() error {
	args := []string{"-D", s.data(), "-h", "127.0.0.1", "-p", strconv.Itoa(s.port), "-k", "", "-c",
		"max_connections=1000",
		// Shared memory in files of the data folder, so that a killed server leaves nothing in
		// memory.
		"-c", "dynamic_shared_memory_type=mmap"}
	for _, setting := range s.extra {
		args = append(args, "-c", setting)
	}
	log, err := os.OpenFile(filepath.Join(s.folder, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	s.process = s.command("postgres", args...)
	s.process.Stdout, s.process.Stderr = log, log
	if err := s.process.Start(); err != nil {
		return err
	}
	if err := await(s.DSN(), s.process.Process.Pid); err != nil {
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("PostgreSQL does not answer: %w: %s", err, text)
	}
	return nil
}

// errEnded means that a server's process ended before it answered.
var errEnded = errors.New("the server ended by itself")

// await returns when the server at dsn answers, or with an error after startTimeout. pid is the
// server's process. If the process has ended, await returns errEnded.
func await(dsn string, pid int) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, dsn)
		if err == nil {
			err = conn.Close(ctx)
		}
		switch {
		case !isIn(pid, running+stopped): // another process answered
			return errors.Join(errEnded, err)
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return err
		}
		worker.Sleep(ctx, 20*time.Millisecond)
	}
}

// Programs returns the folder of the server's programs, such as psql and pgbench.
func (s *Server) Programs() string { return s.binary }

// DSN returns a connection string of the server, for its user "moorage" and database "postgres". It
// is a URL, to which further options can be added with "&". Its connect_timeout is long.
func (s *Server) DSN() string { return connectionString(s.port) }

func connectionString(port int) string {
	return fmt.Sprintf("postgres://moorage@127.0.0.1:%d/postgres?%s", port, options)
}

// NewSchema creates an empty schema, and returns a connection string for it.
func (s *Server) NewSchema(ctx context.Context, name string) (dsn string, err error) {
	conn, err := pgx.Connect(ctx, s.DSN())
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "CREATE SCHEMA "+pgx.Identifier{name}.Sanitize()); err != nil {
		return "", err
	}
	return s.DSN() + "&search_path=" + name, nil
}

// Kill ends the server and all its processes at once, as if its machine lost power. It waits until
// the processes and their shared memory are gone.
func (s *Server) Kill() error {
	if s.process == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	main := s.process.Process.Pid
	// All processes stop before the first one dies: a process that outlives the main process ends
	// its wait for a standby, and so shows a commit that the standby does not have. The main
	// process stops first, so that it starts no other processes.
	freeze(ctx, main)
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", main, main))
	var children []int
	for _, field := range strings.Fields(string(text)) {
		child, err := strconv.Atoi(field)
		if err != nil {
			return err
		}
		children = append(children, child)
	}
	freeze(ctx, children...)
	for _, child := range children {
		_ = syscall.Kill(child, syscall.SIGKILL) // the process may have ended already
	}
	err := s.process.Process.Kill()
	_ = s.process.Wait() // the error only reports that it was killed
	s.process = nil
	for _, child := range children {
		for isIn(child, running+stopped) && ctx.Err() == nil {
			worker.Sleep(ctx, time.Millisecond)
		}
	}
	return errors.Join(err, ctx.Err(), s.removeSegment())
}

// freeze stops processes, and waits until they have stopped or ended.
func freeze(ctx context.Context, processes ...int) {
	for _, process := range processes {
		_ = syscall.Kill(process, syscall.SIGSTOP) // the process may have ended already
	}
	for _, process := range processes {
		for isIn(process, running) && ctx.Err() == nil {
			worker.Sleep(ctx, time.Millisecond)
		}
	}
}

// States of processes in /proc. A running process can act, or waits. A stopped process can act only
// after it is continued. A zombie, which has ended but whose parent has not waited for it, is in
// neither state.
const (
	running = "RSDIP"
	stopped = "Tt"
)

// isIn reports whether a process exists and is in one of the states.
func isIn(process int, states string) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	_, state, found := strings.Cut(string(stat), ") ")
	return err == nil && found && strings.Contains(states, state[:1])
}

// Stop ends the server and removes its files.
func (s *Server) Stop() error {
	return errors.Join(s.Kill(), os.RemoveAll(s.folder))
}
