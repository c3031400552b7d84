package cli

import (
	"fmt"
	"regexp"
	"slices"
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
	// validate adds faults of settings, or of an operand, on a command line that load understood.
	// It may be nil.
	validate func(c Config, faults *usageError)
	run      Action
}

// commands returns every command, in the order of the help text.
func commands(actions Actions) []command {
	all := slices.Concat(storeCommands(actions), recoverCommands(actions), maintainCommands(actions),
		caringCommands(actions))
	all = append(all, warehouseCommands(actions)...)
	all = append(all, secretsCommands(actions)...)
	all = append(all, accessCommands(actions)...)
	all = append(all, leaseCommands(actions)...)
	return append(all,
		command{
			name: "completion", operand: "bash|zsh|fish|powershell", run: complete,
			summary: "print a script that completes command lines",
			text: `Prints the script for one shell. In bash:

  source <(moorage completion bash)
`,
		},
		command{
			name: "man", summary: "print the manual page", run: writeManual,
			text: `Prints a manual page for all commands. To read it:

  moorage man | man -l -
`,
		},
		command{
			name: "version", summary: "say which build this is", run: actions.Version,
			text: "Prints the version of this build, with the commit that it was made from, and that of Go.\n",
		})
}

func storeCommands(actions Actions) []command {
	return []command{
		{
			name: "serve", summary: "run the catalog",
			settings: serverSettings(), validate: validateServe, run: actions.Serve,
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
writes), /metrics (Prometheus), and below /management/v1 what check, backup and recover ask with
--uri.
`,
		},
		{
			name: "migrate", summary: "make or update the tables of a database", run: actions.Migrate,
			settings: storeSettings(), validate: validateMigrate,
			text: `Brings the tables of the PostgreSQL database that --store names to the version of this binary. It
may run while servers run, and several times at once. It only goes forward.
`,
		},
		{
			name: "check", summary: "look whether everything in the store holds together", run: actions.Check,
			settings: asking(),
			validate: validateStopped,
			text: `Checks that every record can be read, that every table and view has a metadata file that can be
read, that names and tables or views belong to each other one to one, and that no record names a
missing file. It prints what is wrong and changes nothing. It exits with 0 if all is well, else 1.

A storage that does not answer, or that refuses the credentials, is asked a few times at most. The
command says which files it could not look at, and why, and exits with 1.

` + stoppedText,
		},
		{
			name: "backup", operand: "DIR", summary: "copy the embedded store, also while its server runs",
			settings: append(storeSettings(),
				askedServer("Ask the server that runs at this address, on this machine, to make the backup."),
				token(), authority()),
			validate: validateBackup, run: actions.Backup,
			text: `Copies the records of the embedded store to DIR, which must not exist yet. The folder that DIR is in
must exist. When the command ends the copy is whole and on the disk, or there is none. It holds
every commit that was acknowledged before.

Without --uri the command opens the store itself, and its server must be stopped. With --uri it asks
the server that runs there, which must be on this machine. DIR is then a name: the server makes a
folder of that name in the folder that its --backups names.

A backup holds records only; metadata and data files stay where they are. To restore it, stop the
server and run moorage serve --data DIR, which goes on in DIR itself. Or put the folder registry of
DIR in the place of the one in --data. The catalog is then as it was: it forgets later commits,
whose files are left over. Files that were purged or trimmed since are gone, as moorage check says.

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

func recoverCommands(actions Actions) []command {
	settings := asking()
	return []command{
		{
			name: "recover list", summary: "list what did not end, what was given up, and purges that wait",
			settings: settings, validate: validateStopped, run: actions.RecoverList,
			text: `Prints every transaction over several tables that has something left to do: those under way, those
that the recovery is ending, and those that it gave up. It gives up after 50 attempts or 5 minutes,
and at once if it cannot read the record. Then the command prints the purges that were given up, and
the tasks that cannot be read, and the purges of dropped tables that can come back until they begin.
It exits with 1 if anything was given up.

` + stoppedText,
		},
		{
			name: "recover retry", operand: "ID|all", summary: "try again what was given up",
			settings: settings, validate: validateRetry, run: actions.RecoverRetry,
			text: `Tries the transaction or the purge with this id again from the start, as recover list shows it. Mend
its storage first. The command tries a transaction at once, and then the servers do; a purge is left
to the servers. A purge that waits because its table may come back begins at once; recover list and
the line of the log about the drop say its id. For everything that was given up say all instead of an
id; all begins no purge that waits.

` + stoppedText,
		},
		{
			name: "recover abort", operand: "ID", summary: "end a transaction",
			settings: settings, validate: validateAbort, run: actions.RecoverAbort,
			text: `Ends the transaction with this id, as recover list shows it. A pending one can no longer become
true, and the servers delete its files. One that was given up is forgotten: the command prints the
files that may be left, and nobody will delete them. A purge cannot be aborted, nor can what has a
record that cannot be read: recover forget removes that.

` + stoppedText,
		},
		{
			name: "recover forget", summary: "after a restore: forget what would have files deleted",
			settings: storeSettings(), validate: validateStopped, run: actions.RecoverForget,
			text: `Run this once on a store restored by anything but moorage backup, before a server starts on it. The
copy still lists old transactions and purges. A server would resume them and delete files that are
in use today. The command is also the last resort for the records of transactions and of tasks that
cannot be read.

The command forgets the transactions and calls the purges off. It deletes no file, so what they
would have deleted is left over. A table that was to be purged is then dropped without a purge; if
the purge had begun, the table cannot come back. Run the command while no server uses the store. It
can run again, and must after an error.
`,
		},
	}
}

func validateMigrate(c Config, faults *usageError) {
	if !c.InDatabase() && !isURI(c.Store) {
		faults.addf("--store: a PostgreSQL database is needed, postgres://USER@HOST:PORT/DATABASE")
	}
}

// validateStopped validates commands that open the store unless they call a server.
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

// Everything replaces the id in recover retry, and means all.
const Everything = "all"

func validateRetry(c Config, faults *usageError) {
	validateStopped(c, faults)
	if c.Operand != Everything && !isUnfinishedID(c.Operand) {
		faults.addf("%q is neither an id, 32 hexadecimal digits that recover list shows, nor all", c.Operand)
	}
}

func validateAbort(c Config, faults *usageError) {
	validateStopped(c, faults)
	if !isUnfinishedID(c.Operand) {
		faults.addf("%q is no id, 32 hexadecimal digits that recover list shows; one is aborted at a time", c.Operand)
	}
}

// isUnfinishedID reports whether text can be the id of a transaction or a purge.
func isUnfinishedID(text string) bool {
	var id registry.ID
	return id.UnmarshalText([]byte(text)) == nil && !id.IsZero()
}

// The longest and the shortest life of a lease, and the longest wait for one.
const (
	leaseTTLMin, leaseTTLMax = 10 * time.Second, time.Hour
	leaseWaitMax             = time.Minute
)

func leaseCommands(actions Actions) []command {
	return []command{{
		name: "lease run", summary: "run a job on a table, under a lease", settings: leaseSettings(),
		run: actions.LeaseRun,
		text: `Takes a lease on a table from the server at --uri, runs the program that --exec names, and renews
the lease as long as it runs. Then it gives the lease back. If the lease is lost the program gets
SIGTERM, and the command fails.

The program gets no arguments, and no shell is in between. Names are in its environment:
MOORAGE_URI, MOORAGE_WAREHOUSE, MOORAGE_NAMESPACE (its levels joined by the byte 0x1F),
MOORAGE_TABLE, and MOORAGE_LEASE. MOORAGE_JOB is the path of a file that has all of these as JSON.
Never put a name into the text of a script or of SQL: tables may be called anything.

A commit that sends MOORAGE_LEASE in the header X-Moorage-Lease happens only while the lease is
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
			usage: "What others are told about who works. Default: the machine and the process.",
			set:   text(func(c *Config) *string { return &c.Maintain.Holder })},
		{name: "ttl", value: "DURATION", preset: "2m", flagOnly: true,
			usage: "How long a lease lasts without a renewal, 10s to 1h. It is renewed three times as often.",
			set: one(within(time.ParseDuration, leaseTTLMin, leaseTTLMax), "a duration from 10s to 1h",
				func(c *Config) *time.Duration { return &c.Maintain.TTL })},
		{name: "once", flagOnly: true, usage: "Do one piece of work, or none.",
			set: func(c *Config, _ []string) error { c.Maintain.Once = true; return nil }},
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
			usage: "What others are told about who has the lease. Default: the machine and the process.",
			set:   words(func(w *LeaseWords) *string { return &w.Holder })},
		{name: "ttl", value: "DURATION", preset: "2m", flagOnly: true,
			usage: "How long the lease lasts without a renewal, 10s to 1h. It is renewed three times as often.",
			set: one(within(time.ParseDuration, leaseTTLMin, leaseTTLMax), "a duration from 10s to 1h",
				func(c *Config) *time.Duration { return &c.Lease.TTL })},
		{name: "wait", value: "DURATION", preset: "0s", flagOnly: true,
			usage: "How long to wait for a lease that somebody else has, at most 1m.",
			set: one(within(time.ParseDuration, 0, leaseWaitMax), "a duration from 0s to 1m",
				func(c *Config) *time.Duration { return &c.Lease.Wait })},
		{name: "exec", value: "FILE", required: true, flagOnly: true, usage: "The program to run.",
			set: program(func(c *Config) *string { return &c.Lease.Exec })},
	}
}
