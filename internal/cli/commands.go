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
	operand string // what follows the flags, "NAME"; empty if nothing may follow
	// words reads several words after the flags. If it is nil, only one word may follow.
	words    func(c *Config, words []string) error
	summary  string // one line
	text     string // help before the flags: lines that end in a newline
	settings []setting
	// operands are the kinds of the operands of a command for people, for completion. The last one
	// also holds for further operands.
	operands []Operand
	// connects means that the command asks a server, which a profile can name.
	connects bool
	// isCompleting means that the words of the command are completed, and the command does not run.
	isCompleting bool
	// validate adds the faults of settings, or of an operand, that are parsed but not valid. It may
	// be nil.
	validate func(c Config, faults *usageError)
	run      Action // only of commands about the command line itself; nil for other commands
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
			text: `Runs the catalog until SIGTERM, SIGINT or SIGHUP, then lets the requests under way end. It ignores
SIGHUP if it was started so, as by nohup. With an audit log in a file SIGHUP has it opened again,
and ends nothing.

Each setting is a flag, an environment variable, and a key of the YAML file that --config names. A
flag wins over the environment, the environment over the file, the file over the default. In the
file the names stand without dashes:

  data: /var/lib/moorage
  listen: 127.0.0.1:8181
  allow-location: ["file:///srv/lake"]

Besides the catalog the server answers /healthz (the process runs), /readyz (its store takes
writes), /metrics (Prometheus), and below /management/v1 what the other commands ask
with --uri.
`,
		},
		{
			name: "healthcheck", summary: "ask whether the server of this machine is ready",
			settings: probeSettings(), validate: validateHealthcheck,
			text: `Asks GET /readyz of the server that runs on this machine, at the address that the same settings give
moorage serve: at --debug-listen if there is one, else at --listen. It exits with 0 if the server is
ready, with 3 if it is not, and with 1 if no server answers within 5 seconds. Images and units of
containers use it, because they have no other program that could ask.
`,
		},
		{
			name: "migrate", summary: "create or update the tables of a database",
			settings: storeSettings(), validate: validateMigrate,
			text: `Brings the tables of the PostgreSQL database that --store names to the version of this binary. It
may run while servers run, and several times at once. It only goes forward.
`,
		},
		{
			name: "backup", operand: "DIR", summary: "copy the embedded store, also while its server runs",
			settings: append(storeSettings(),
				askedServer("Ask the server that runs at this address, on this machine, to make the backup."),
				token(), authority()),
			validate: validateBackup,
			text: `Copies the records of the embedded store to DIR, which must not exist yet. The folder that DIR is in
must exist. When the command ends the copy is whole and on the disk, or there is none. It holds
every commit that was acknowledged before.

Without --uri the command opens the store itself, and its server must be stopped. With --uri it asks
the server that runs there, which must be on this machine. DIR is then a name: the server makes a
folder of that name in the folder that its --backups names.

A backup holds records only; metadata and data files stay where they are. To restore it, stop the
server and run moorage serve --data DIR, which goes on in DIR itself. Or put the folder registry of
DIR in the place of the one in --data. The catalog is then as it was: it forgets later commits,
whose files are left over. Files that were purged or trimmed since are gone, as moorage doctor --deep says.

A backup deletes nothing of the store that it copies, so you can go back to that store. It leaves
out the transactions under way, and holds tables that were to be purged as dropped without a purge.
moorage serve warns that the warehouse default was made in another folder, where its tables are.
Never serve a backup while another server serves the same tables.
`,
		},
	}
}

const stoppedText = `Without --uri the command opens the store itself. If that is a folder, its server must be stopped.
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
			text: `Prints findings, each with its level (ok, warn or bad), a fact, and what to do. It shows the
transactions over several tables that are not done, the purges and maintenance jobs that were given
up, the purges that wait because their table can come back, tasks that cannot be read, and the
warnings of GET /readyz. It also shows the versions of the nodes, how the store answers, clocks, the
age of the log of changes, settings that cost much, and when the caller's credential ends. The
servers give a transaction up after 50 attempts or 5 minutes, and at once if they cannot read its
record.

With --deep it also checks that every record can be read, that every table and view has a metadata
file that can be read, that names and tables or views belong to each other one to one, and that no
record names a missing file. It tries a storage that does not answer a few times at most, and prints
which files it could not read.

The command changes nothing. It exits with 3 if a finding is bad.

` + stoppedText,
		},
		{
			name: "doctor retry", operand: "ID|all", summary: "retry what was given up",
			settings: asking(), validate: validateRetry,
			text: `Retries the transaction, the purge or the maintenance job with this id, as doctor shows it. First
repair the cause. The command tries a transaction at once; the servers try the others. A purge that
waits because its table can come back begins at once. The word all retries everything that was given
up. It begins no purge that waits, and ends no quarantine of a job.

` + stoppedText,
		},
		{
			name: "doctor abort", operand: "ID", summary: "end a transaction or a job",
			settings: asking(), validate: validateAbort,
			text: `Ends the transaction or the maintenance job with this id, as doctor shows it. A pending transaction
can then no longer succeed, and the servers delete its files. A transaction that was given up is
forgotten: the command prints the files that may be left, which no server deletes. The files that a
job has not deleted stay. A purge cannot be aborted. Neither can anything whose record cannot be
read: doctor forget removes that.

` + stoppedText,
		},
		{
			name: "doctor forget", summary: "after a restore: cancel all planned deletions of files",
			settings: storeSettings(), validate: validateStopped,
			text: `Run this once on a store restored by anything but moorage backup, before a server starts on it. The
copy still lists old transactions and purges. A server would resume them and delete files that are
in use today. The command is also the last resort for the records of transactions and of tasks that
cannot be read.

The command forgets the transactions and cancels the purges. It deletes no file, so what they would
have deleted is left over. A table with a planned purge is then dropped without a purge; if the purge
had begun, the table cannot come back. Run the command while no server uses the store. It can run
again, and must after an error.
`,
		},
	}
}

// validateHealthcheck refuses a port that only the server knows.
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

// CheckBackupName returns why a name is not valid for a backup.
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

// Everything replaces the id in doctor retry, and means all.
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
		text: `Takes a lease on a table from the server at --uri, runs the program that --exec names, and renews
the lease as long as it runs. Then it releases the lease. If the lease is lost, the program gets
SIGTERM, and the command fails.

The program gets no arguments, and runs without a shell. Its environment has MOORAGE_URI,
MOORAGE_WAREHOUSE, MOORAGE_NAMESPACE (levels joined by the byte 0x1F), MOORAGE_TABLE, and
MOORAGE_LEASE. MOORAGE_JOB is the path of a file that has all of these as JSON. Never put a name
into the text of a script or of SQL: the name of a table can contain any character.

A commit that sends MOORAGE_LEASE in the header X-Moorage-Lease succeeds only while the lease is
held. Java and PyIceberg send it if the catalog has the property header.X-Moorage-Lease.
`,
	}}
}

func workSettings() []setting {
	server := askedServer("The server that hands out work.")
	server.required = true
	return []setting{
		server, token(), authority(),
		{name: "kind", value: "KIND", list: true, preset: "compaction", flagOnly: true,
			usage: "What the program does: compaction. It may be given several times.",
			set: func(c *Config, v []string) error {
				c.Maintain.Kinds = v
				return nil
			}},
		{name: "holder", value: "TEXT", flagOnly: true,
			usage: "Name of the worker that others see. Default: the machine and the process.",
			set:   text(func(c *Config) *string { return &c.Maintain.Holder })},
		{name: "ttl", value: "DURATION", preset: "2m", flagOnly: true,
			usage: "How long a lease lasts without a renewal, 10s to 1h. It is renewed three times as often.",
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
	server := askedServer("The server that gives out the lease.")
	server.required = true
	return []setting{
		server, token(), authority(),
		{name: "warehouse", value: "NAME", preset: "default", flagOnly: true, usage: "Warehouse of the table.",
			set: words(func(w *LeaseWords) *string { return &w.Warehouse })},
		{name: "namespace", value: "LEVEL", list: true, required: true, flagOnly: true,
			usage: "Namespace of the table. One that is in another is given level by level, the outer first.",
			set: func(c *Config, v []string) error {
				c.Lease.Namespace = v
				return nil
			}},
		{name: "table", value: "NAME", required: true, flagOnly: true, usage: "Name of the table.",
			set: words(func(w *LeaseWords) *string { return &w.Table })},
		{name: "scope", value: "SCOPE", preset: "*", flagOnly: true,
			usage: "What the lease is on: * for the whole table, job:KIND, or part: and hexadecimal digits.",
			set:   words(func(w *LeaseWords) *string { return &w.Scope })},
		{name: "holder", value: "TEXT", flagOnly: true,
			usage: "Name of the holder that others see. Default: the machine and the process.",
			set:   words(func(w *LeaseWords) *string { return &w.Holder })},
		{name: "ttl", value: "DURATION", preset: "2m", flagOnly: true,
			usage: "How long the lease lasts without a renewal, 10s to 1h. It is renewed three times as often.",
			set: one(within(time.ParseDuration, leaseTTLMin, leaseTTLMax), "a duration from 10s to 1h",
				func(c *Config) *time.Duration { return &c.Lease.TTL })},
		{name: "wait", value: "DURATION", preset: "0s", flagOnly: true,
			usage: "How long to wait for a lease that another holder has, at most 1m.",
			set: one(within(time.ParseDuration, 0, leaseWaitMax), "a duration from 0s to 1m",
				func(c *Config) *time.Duration { return &c.Lease.Wait })},
		{name: "exec", value: "FILE", required: true, flagOnly: true, usage: "The program to run.",
			set: program(func(c *Config) *string { return &c.Lease.Exec })},
	}
}
