package pgserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// Bouncer is a running PgBouncer in the mode transaction pooling: each transaction uses any free
// connection among a few connections to the server. It accepts every role of the server. It is safe
// for concurrent use, except for Kill, Restart and Stop.
type Bouncer struct {
	port     int
	folder   string
	program  string
	target   string // the server's connection string
	settings []string
	owner    *syscall.Credential
	process  *exec.Cmd
}

// StartBouncer starts a PgBouncer in front of the server at dsn (Server.DSN, or the DSN of a
// proxy). settings (name = value) are added to this package's settings in the section [pgbouncer].
// StartBouncer looks for the program in PATH and in Debian's folder. Stop it with Stop.
func StartBouncer(dsn string, settings ...string) (*Bouncer, error) {
	program, err := findBouncer()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "moorage-bouncer-")
	if err != nil {
		return nil, err
	}
	b := &Bouncer{folder: folder, program: program}
	if b.owner, err = own(folder); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	b.target, b.settings = dsn, settings
	if err := launch(&b.port, b); err != nil {
		return nil, errors.Join(err, b.Stop())
	}
	return b, nil
}

func findBouncer() (string, error) {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if program, err := exec.LookPath(name); err == nil {
			return program, nil
		}
	}
	return "", errors.New("PgBouncer is not installed")
}

// BouncerPrepares reports whether the installed PgBouncer supports prepared statements. Version
// 1.21 and later support them, with the setting max_prepared_statements.
func BouncerPrepares() (bool, error) {
	program, err := findBouncer()
	if err != nil {
		return false, err
	}
	out, err := exec.Command(program, "--version").Output()
	if err != nil {
		return false, fmt.Errorf("%s --version: %w", program, err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(string(out), "PgBouncer %d.%d", &major, &minor); err != nil {
		return false, fmt.Errorf("%s --version: %q: %w", program, out, err)
	}
	return major > 1 || minor >= 21, nil
}

// configure writes the files that PgBouncer reads when it starts.
func (b *Bouncer) configure() error {
	target, err := pgx.ParseConfig(b.target)
	if err != nil {
		return err
	}
	lines := append([]string{
		"[databases]",
		// PgBouncer queries the server about users that are not in auth_file.
		fmt.Sprintf("* = host=%s port=%d auth_user=moorage", target.Host, target.Port),
		"[pgbouncer]",
		"listen_addr = 127.0.0.1",
		fmt.Sprintf("listen_port = %d", b.port),
		"unix_socket_dir =",
		"server_tls_sslmode = disable",
		"auth_type = trust",
		"auth_file = " + b.file("users"),
		"pool_mode = transaction",
		"max_client_conn = 1000",
	}, b.settings...)
	return errors.Join(
		os.WriteFile(b.file("users"), []byte("\"moorage\" \"\"\n"), 0o644),
		os.WriteFile(b.file("ini"), []byte(strings.Join(lines, "\n")+"\n"), 0o644),
	)
}

func (b *Bouncer) file(name string) string { return filepath.Join(b.folder, name) }

// Restart starts PgBouncer again on its port, for example after Kill, and waits until it answers.
func (b *Bouncer) Restart() error {
	if err := b.configure(); err != nil {
		return err
	}
	log, err := os.OpenFile(b.file("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	b.process = exec.Command(b.program, b.file("ini"))
	b.process.Dir = b.folder
	b.process.SysProcAttr = &syscall.SysProcAttr{Credential: b.owner, Pdeathsig: syscall.SIGKILL}
	b.process.Stdout, b.process.Stderr = log, log
	if err := b.process.Start(); err != nil {
		return err
	}
	if err := await(b.DSN(), b.process.Process.Pid); err != nil {
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("PgBouncer does not answer: %w: %s", err, text)
	}
	return nil
}

// DSN returns a connection string through b. It is like Server.DSN, which bypasses b.
func (b *Bouncer) DSN() string {
	return connectionString(b.port)
}

// Kill ends PgBouncer at once, and waits until it is gone.
func (b *Bouncer) Kill() error {
	if b.process == nil {
		return nil
	}
	err := b.process.Process.Kill()
	_ = b.process.Wait() // the error only reports that it was killed
	b.process = nil
	return err
}

// Stop ends PgBouncer and removes its files.
func (b *Bouncer) Stop() error { return errors.Join(b.Kill(), os.RemoveAll(b.folder)) }
