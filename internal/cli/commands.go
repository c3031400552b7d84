package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"moorage/registry"
)

// command is a sub-command of moorage.
type command struct {
	name    string // as typed, "warehouse create"
	operand string // its operand in help, such as "NAME"; empty if it has none
	// words reads several operands. If it is nil, there may be only one operand.
	words    func(c *Config, words []string) error
	summary  string // one line
	text     string // help text before the flags: lines that end in a newline
	settings []setting
	// operands are the kinds of a command's operands, for completion. The last kind also holds for
	// all further operands. Only commands for people have them.
	operands []Operand
	// connects is set if the command calls a server, which a profile can name.
	connects bool
	// isCompleting is set if the shell asks for completions; the command then does not run.
	isCompleting bool
	// validate adds the faults of settings and operands that could be parsed but are not valid. It
	// may be nil.
	validate func(c Config, faults *usageError)
	run      Action // set only for commands about the command line itself
}

// commands returns every command.
func commands() []command {
	all := slices.Concat(beginCommands(), lookCommands(), versionCommands(), changeCommands(), codeCommands(),
		transferCommands(), storeCommands(), doctorCommands(), maintainCommands(), warehouseCommands(),
		secretsCommands(), accessCommands(), leaseCommands())
	return append(append(all, toolCommands()...),
		command{
			name: "completion", operand: "bash|zsh|fish|powershell", run: complete,
			summary: "print a script that completes command lines",
			text: `Prints the script for one shell. In bash:

  source <(moorage completion bash)
`,
		},
		command{
			name: "version", summary: "print the version of this build",
			text: "Prints the version of this build, the commit that it was built from, and the version of Go.\n",
		})
}

func storeCommands() []command {
	return []command{
		{
			name: "serve", summary: "run the catalog",
			settings: serverSettings(), validate: validateServe,
			text: `Runs the catalog until SIGTERM, SIGINT or SIGHUP, and then lets the requests in progress end. SIGHUP
is ignored if the process was started with SIGHUP ignored, as nohup does. If the audit log is a
file, SIGHUP makes the server open the file again, and does not end the server.

Each setting is a flag, an environment variable, and a key of the YAML file given by --config. A
flag overrides the environment, the environment overrides the file, and the file overrides the
default. In the file, names have no leading dashes:

  data: /var/lib/moorage
  listen: 127.0.0.1:8181
  allow-location: ["file:///srv/lake"]

Besides the catalog, the server answers /healthz (the process runs), /readyz (the store accepts
writes), /metrics (Prometheus), and below /management/v1 the requests that other commands send with
--uri.
`,
		},
		{
			name: "healthcheck", summary: "check whether the server on this machine is ready",
			settings: probeSettings(), validate: validateHealthcheck,
			text: `Requests GET /readyz from the server on this machine. It takes the address from the settings of
moorage serve: --debug-listen if that is set, and otherwise --listen. The exit code is 0 if the
server is ready, 3 if it is not, and 1 if no server answers within 5 seconds. The container images
and unit files use this command for their health checks.
`,
		},
		{
			name: "migrate", summary: "create or update the tables of a database",
			settings: storeSettings(), validate: validateMigrate,
			text: `Migrates the tables of the PostgreSQL database given by --store to the version of this binary. It
may run while servers are running, and several times at once. There is no way back to an older
version.
`,
		},
		{
			name: "backup", operand: "DIR", summary: "copy the embedded store, even while its server runs",
			settings: append(storeSettings(),
				askedServer("Address of the server, on this machine, that makes the backup."),
				token(), authority()),
			validate: validateBackup,
			text: `Copies the records of the embedded store to DIR. DIR must not exist yet, and its parent folder must
exist. When the command ends, the copy is either complete and on disk, or does not exist. It
contains every commit that was acknowledged before the command started.

Without --uri, the command opens the store itself, and its server must be stopped. With --uri, it
asks the server at that address, which must be on this machine. DIR is then a name: the server
creates a folder of that name below its --backups.

A backup contains only records; metadata files and data files stay where they are. To restore it,
stop the server and run moorage serve --data DIR, which uses DIR itself from then on. Or replace the
folder registry in --data with the one in DIR. The catalog is then in its former state. It does not
know later commits, and their files are left over. Files that have been deleted since then are
missing; moorage doctor --deep lists them.

The backup does not change the original store, so you can go back to it. Transactions in progress
are left out. A table whose purge was still waiting is in the backup as dropped without a purge.
moorage serve then warns that the warehouse default was made in another folder, where its tables
are. Never serve a backup while another server serves the same tables.
`,
		},
	}
}

const stoppedText = `Without --uri, the command opens the store itself. If the store is a folder, its server must be
stopped.
`

// deepSetting returns the setting that makes a command examine every record and metadata file.
func deepSetting() setting {
	return setting{name: "deep", flagOnly: true, usage: "Also read every record and metadata file of the store.",
		set: toggle(func(c *Config) *bool { return &c.Deep })}
}

func doctorCommands() []command {
	return []command{
		{
			name: "doctor", summary: "show what is wrong, and what to do",
			settings: asking(deepSetting()), validate: validateStopped,
			text: `Prints findings, each with its level (ok, warn or bad), a fact, and a remedy. They cover unfinished
transactions over several tables, purges and maintenance jobs that were given up, purges that wait
because their table can come back, tasks that cannot be read, and the warnings of GET /readyz. They
also cover the versions of the nodes, the response times of the store, clocks, the age of the change
log, expensive settings, and the expiry of the caller's credential. The servers give up a
transaction after 50 attempts or 5 minutes, and at once if they cannot read its record.

With --deep, it also checks that every record and the metadata file of every table and view can be
read, that each table or view has exactly one name, and that no record refers to a missing file. If
a storage does not answer, the command retries a few times, and then prints the files that it could
not read.

The command changes nothing. It exits with 3 if a finding is bad.

` + stoppedText,
		},
		{
			name: "doctor retry", operand: "ID|all", summary: "retry what was given up",
			settings: asking(), validate: validateRetry,
			text: `Retries the transaction, the purge or the maintenance job with this id, which doctor prints. Repair
the cause first. The command itself tries a transaction at once; the servers try the others. A purge
that waits because its table can come back begins at once. The word all retries everything that was
given up. It does not begin waiting purges, and does not end the quarantine of a job.

` + stoppedText,
		},
		{
			name: "doctor abort", operand: "ID", summary: "end a transaction or a job",
			settings: asking(), validate: validateAbort,
			text: `Ends the transaction or the maintenance job with this id, which doctor prints. A pending transaction
can then no longer succeed, and the servers delete its files. A transaction that was given up is
forgotten: the command prints the files that may be left over, which no server deletes. Files that a
job has not yet deleted stay. Neither a purge nor anything whose record cannot be read can be
aborted; for the latter there is doctor forget.

` + stoppedText,
		},
		{
			name: "doctor forget", summary: "after a restore: cancel all planned deletions of files",
			settings: storeSettings(), validate: validateStopped,
			text: `Run this once on a store that was restored from anything other than moorage backup, before a server
starts on it. The copy still lists old transactions and purges. A server would resume them, and
delete files that are in use today. The command is also the last resort if the records of
transactions or tasks cannot be read.

The command forgets the transactions and cancels the purges. It deletes no files, so the files that
these would have deleted are left over. A table with a planned purge counts as dropped without a
purge. If its purge had already begun, the table cannot come back. Run the command while no server
uses the store. It can be run again, and must be run again after an error.
`,
		},
	}
}

// validateHealthcheck refuses port 0, because only the server knows the port that it then uses.
func validateHealthcheck(c Config, faults *usageError) {
	name, address := "listen", c.Listen
	if c.DebugListen != "" {
		name, address = "debug-listen", c.DebugListen
	}
	if strings.HasSuffix(address, ":0") {
		faults.addf("--%s: with port 0 only the server knows its port; choose one", name)
	}
}

func validateMigrate(c Config, faults *usageError) {
	if !c.InDatabase() && !isURI(c.Store) {
		faults.addf("--store: a PostgreSQL database is needed, postgres://USER@HOST:PORT/DATABASE")
	}
}

// validateStopped validates a command that opens the store itself if it does not call a server.
func validateStopped(c Config, faults *usageError) {
	validateKeys(c, faults)
	if c.URI == "" && c.Store == StoreMemory {
		faults.addf("--store: a store in memory is gone when its server ends")
	}
}

// backupName matches the names that a client may give a backup: the name of one folder, not hidden
// and not the parent folder.
var backupName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// CheckBackupName returns an error if a name is not valid for a backup.
func CheckBackupName(name string) error {
	if backupName.MatchString(name) {
		return nil
	}
	return fmt.Errorf("%q is not a name of up to 100 letters, digits, dots, dashes and underscores "+
		"that begins with a letter or a digit", name)
}

func validateBackup(c Config, faults *usageError) {
	validateStopped(c, faults)
	if err := CheckBackupName(c.Operand); c.URI != "" && err != nil {
		faults.addf("backup --uri: %s; the server chooses the folder that it goes to", err)
	}
}

// Everything is the operand of doctor retry that stands for all ids.
const Everything = "all"

func validateRetry(c Config, faults *usageError) {
	validateStopped(c, faults)
	if c.Operand != Everything && !isID(c.Operand) {
		faults.addf("%q is neither an id, 32 hexadecimal digits that doctor shows, nor all", c.Operand)
	}
}

func validateAbort(c Config, faults *usageError) {
	validateStopped(c, faults)
	if !isID(c.Operand) {
		faults.addf("%q is not an id, 32 hexadecimal digits that doctor shows; the command aborts one at a time",
			c.Operand)
	}
}

// isID reports whether text can be the id of a transaction, a purge or a job: 32 hexadecimal
// digits, not all zero.
func isID(text string) bool {
	var id registry.ID
	return id.UnmarshalText([]byte(text)) == nil && !id.IsZero()
}

// The longest and the shortest life of a lease, and the longest wait for one.
const (
	leaseTTLMin, leaseTTLMax = 10 * time.Second, time.Hour
	leaseWaitMax             = time.Minute
)

func leaseCommands() []command {
	return []command{{
		name: "lease run", summary: "run a program under a lease on a table", settings: leaseSettings(),
		text: `Takes a lease on a table from the server at --uri, runs the program given by --exec, and renews the
lease as long as the program runs. Then it releases the lease. If the lease is lost, the program
gets SIGTERM, and the command fails.

The program gets no arguments, and runs without a shell. Its environment contains MOORAGE_URI,
MOORAGE_WAREHOUSE, MOORAGE_NAMESPACE (levels joined by the byte 0x1F), MOORAGE_TABLE, and
MOORAGE_LEASE. MOORAGE_JOB is the path of a JSON file with the same values. Never put a name into
the text of a script or of SQL, because the name of a table can contain any character.

A commit that sends MOORAGE_LEASE in the header X-Moorage-Lease succeeds only while the lease is
held. Java and PyIceberg send it if the catalog has the property header.X-Moorage-Lease.
`,
	}}
}

func workSettings() []setting {
	server := askedServer("Address of the server that hands out work.")
	server.required = true
	return []setting{
		server, token(), authority(),
		{name: "kind", value: "KIND", list: true, preset: "compaction", flagOnly: true,
			usage: "Kind of work that the program does: compaction. May be repeated.",
			set: func(c *Config, v []string) error {
				c.Maintain.Kinds = v
				return nil
			}},
		{name: "holder", value: "TEXT", flagOnly: true,
			usage: "Name of the worker, as others see it. Default: the machine and the process.",
			set:   text(func(c *Config) *string { return &c.Maintain.Holder })},
		{name: "ttl", value: "DURATION", preset: "2m", flagOnly: true,
			usage: "How long a lease lasts without a renewal, 10s to 1h. The command renews it three times in " +
				"this period.",
			set: one(within(time.ParseDuration, leaseTTLMin, leaseTTLMax), "a duration from 10s to 1h",
				func(c *Config) *time.Duration { return &c.Maintain.TTL })},
		{name: "once", flagOnly: true, usage: "Do one piece of work, or none.",
			set: toggle(func(c *Config) *bool { return &c.Maintain.Once })},
		{name: "exec", value: "FILE", required: true, flagOnly: true, usage: "The program to run.",
			set: program(func(c *Config) *string { return &c.Maintain.Exec })},
	}
}

func leaseSettings() []setting {
	words := func(field func(*LeaseWords) *string) func(*Config, []string) error {
		return text(func(c *Config) *string { return field(&c.Lease) })
	}
	server := askedServer("Address of the server that grants the lease.")
	server.required = true
	return []setting{
		server, token(), authority(),
		{name: "warehouse", value: "NAME", preset: "default", flagOnly: true, usage: "Warehouse of the table.",
			set: words(func(w *LeaseWords) *string { return &w.Warehouse })},
		{name: "namespace", value: "LEVEL", list: true, required: true, flagOnly: true,
			usage: "Namespace of the table. For a nested namespace, repeat the flag for each level, the " +
				"outermost first.",
			set: func(c *Config, v []string) error {
				c.Lease.Namespace = v
				return nil
			}},
		{name: "table", value: "NAME", required: true, flagOnly: true, usage: "Name of the table.",
			set: words(func(w *LeaseWords) *string { return &w.Table })},
		{name: "scope", value: "SCOPE", preset: "*", flagOnly: true,
			usage: "Scope of the lease: * for the whole table, job:KIND, or part: and hexadecimal digits.",
			set:   words(func(w *LeaseWords) *string { return &w.Scope })},
		{name: "holder", value: "TEXT", flagOnly: true,
			usage: "Name of the holder, as others see it. Default: the machine and the process.",
			set:   words(func(w *LeaseWords) *string { return &w.Holder })},
		{name: "ttl", value: "DURATION", preset: "2m", flagOnly: true,
			usage: "How long the lease lasts without a renewal, 10s to 1h. The command renews it three times in " +
				"this period.",
			set: one(within(time.ParseDuration, leaseTTLMin, leaseTTLMax), "a duration from 10s to 1h",
				func(c *Config) *time.Duration { return &c.Lease.TTL })},
		{name: "wait", value: "DURATION", preset: "0s", flagOnly: true,
			usage: "How long to wait if another holder has the lease, at most 1m.",
			set: one(within(time.ParseDuration, 0, leaseWaitMax), "a duration from 0s to 1m",
				func(c *Config) *time.Duration { return &c.Lease.Wait })},
		{name: "exec", value: "FILE", required: true, flagOnly: true, usage: "The program to run.",
			set: program(func(c *Config) *string { return &c.Lease.Exec })},
	}
}
