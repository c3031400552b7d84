package cli

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

const maintainText = `
TABLE is the full name of a table: its warehouse, its namespace and its name, such as
default.sales.orders.
` + accessText

const maintainObjectText = `
OBJECT is the word server, or a kind and a name: warehouse W, namespace W.A.B, table W.A.B.T. Put a
part that contains a dot in double quotes.
` + accessText

// maintainCommands returns the commands about maintenance.
func maintainCommands() []command {
	reason := func(usage string) setting {
		return setting{name: "reason", value: "TEXT", flagOnly: true, usage: usage,
			set: text(func(c *Config) *string { return &c.Maintain.Reason })}
	}
	return []command{
		{
			name: "maintain status", operand: "[OBJECT]", words: wordsOfStatus,
			summary: "show the maintenance of an object, or all jobs", settings: asking(), validate: validateStopped,
			text: `Prints the policies and pauses of an object. For a table, it also prints each kind of maintenance
with its effective settings and their sources, the jobs in progress, and the last jobs that have
ended. Without an object, it prints all jobs in progress. The exit code is then 3 if one of them is
blocked; see moorage doctor.
` + maintainObjectText,
		},
		{
			name: "maintain set", operand: "OBJECT snapshots|orphans|compaction on|off|inherit", words: wordsOfSet,
			summary: "set the maintenance policy of an object", settings: asking(policySettings()...),
			validate: validateSet,
			text: `Sets whether the tables in an object are maintained: on, off, or inherit, which means the policy of
the parent object. The policy of the innermost object wins. Without a policy, nothing is maintained
and no files are deleted. The settings are the same as in Amazon S3 Tables; see the guide "Keep
tables small".

With on, the command first prints what would happen to the tables if they were due now. It does so
for at most 100 tables, because the preview reads as much as the jobs would. With off, jobs in
progress continue; end them with maintain job cancel.
` + maintainObjectText,
		},
		{
			name: "maintain run", operand: "snapshots|orphans|compaction TABLE | orphans warehouse NAME",
			words:    wordsOfRun,
			summary:  "expire snapshots or remove orphans now",
			settings: asking(runSettings()...), validate: validateRun,
			text: `For snapshots, the command removes the expired snapshots from the table at once. It creates a job
that deletes the files that only these snapshots reach, after --delay. For orphans, it creates a job
that lists the files in the locations of the table that no version of the table reaches. The job
deletes these orphans after --quarantine, if they are still not reached. Until then, maintain job
cancel keeps all files. Files older than the table's location are kept and counted, unless --adopt
declares once that they belong to the table.

The table's own settings override the flags: its properties history.expire.max-snapshot-age-ms,
.min-snapshots-to-keep and .max-ref-age-ms, and the limits of each branch and tag. Policies are
ignored, but pauses are not. With --by-policy, the settings come from the policies instead: the
table becomes due now, even if its maintenance was blocked, and a server begins the job. Compaction
needs --by-policy.

With --dry-run, the command changes nothing. It prints how many snapshots, branches and tags would
expire, how many files would be deleted, and why the rest stays. With -v, it lists each of them. It
reads as much as the job would read.

No files are deleted if the table is encrypted, or has gc.enabled=false or
moorage.maintenance.hold=true. Metadata files, and files outside the locations of the table, always
stay.

For a warehouse, --dry-run prints the files outside the locations of all tables and views that no
table or view reaches. No job deletes these files: check them, and delete them with the tools of the
storage. Other catalogs may have tables there that this store does not know. Dropped tables that can
come back count as tables. A folder with a metadata file is left out, and so are all files that the
metadata file names. Files whose names begin with _ or . are left out too, and so are the folders of
other warehouses. If the manifests of a table cannot be read, the command prints no files, and the
exit code is 3.

With --adopt, this store becomes the one that removes orphans in the folder of a warehouse, and the
command prints the id of the previous one. If two stores did this, each would take the other's files
for orphans. So the first store that looks for orphans writes its id to ~moorage/owner, and other
stores are refused. A restored backup counts as another store. Adopt a folder only if no other store
uses tables there.
` + maintainText,
		},
		{
			name: "maintain pause", operand: "OBJECT", words: wordsOfObject,
			summary: "stop the maintenance of an object", validate: validateStopped,
			settings: asking(reason("Reason for the pause, for other operators.")),
			text: `Stops the maintenance of all tables in an object until maintain resume. That includes jobs that are
already deleting files.
` + maintainObjectText,
		},
		{
			name: "maintain resume", operand: "OBJECT", words: wordsOfObject,
			summary: "end the pause of an object", validate: validateStopped, settings: asking(),
			text: `Ends the pause of an object. Pauses of its containers, and of objects in it, stay.
` + maintainObjectText,
		},
		{
			name: "maintain rescan", operand: "OBJECT", words: wordsOfObject,
			summary: "check all tables of an object for what is due", validate: validateStopped, settings: asking(),
			text: `Makes the servers check all tables in an object for due maintenance. When a policy changes, they do
that by themselves.
` + maintainObjectText,
		},
		{
			name: "maintain job", operand: "[cancel|retry|quarantine|pause|resume] ID", words: wordsOfJob,
			summary: "show the files of a job, or change it", validate: validateJob,
			settings: asking(reason("Reason for a quarantine or a pause, which both require."), confirmSetting(
				"With retry: confirm that most files of the table are orphans.")),
			text: `With only an id, the command prints the location of each file that the job will delete, one on each
line. cancel ends a job, and keeps the files that the job has not deleted yet. retry continues a
blocked job. With --confirm, it continues a job that is blocked because most files of the table are
orphans. quarantine blocks a job until an operator cancels or retries it. pause stops a job where it
is until resume, and does not count as an error.
` + accessText,
		},
		{
			name: "maintain work", summary: "run a program for each table that is due", settings: workSettings(),
			text: `Claims work from the server at --uri, table by table, and runs the program given by --exec for each,
such as an engine that compacts the table. Each piece of work comes with a lease, which the command
renews as long as the program runs. Exit status 0 of the program means that the work is done, and
any other status that it failed. Failed work is due again after one minute, then after two, and is
blocked after five failures. If the command is stopped, it returns its work, which does not count as
a failure.

The program gets no arguments, and runs without a shell. Its environment, and the JSON file at the
path in MOORAGE_JOB, are the same as for moorage lease run. In addition, there are MOORAGE_KIND and
MOORAGE_SETTINGS, which contains the settings as JSON. Never put a name into the text of a script or
of SQL.

The commits of the program must send MOORAGE_LEASE in the header X-Moorage-Lease. If the lease is
lost, the program gets SIGTERM, and the server gives the work to another program. The command ends
at SIGINT or SIGTERM. With --once, it does one piece of work, or none if nothing is due.
`,
		},
	}
}

func confirmSetting(usage string) setting {
	return setting{name: "confirm", flagOnly: true, usage: usage,
		set: toggle(func(c *Config) *bool { return &c.Maintain.Confirm })}
}

// runSettings returns the settings of maintain run.
func runSettings() []setting {
	return slices.Concat(snapshotSettings(), orphanSettings(), []setting{
		{name: "by-policy", flagOnly: true,
			usage: "Take all settings from the policies of the table.",
			set:   toggle(func(c *Config) *bool { return &c.Maintain.ByPolicy })},
		dryRun(), sample(), verbose(),
	})
}

func dryRun() setting {
	return setting{name: "dry-run", flagOnly: true, usage: "Print what would happen, and change nothing.",
		set: toggle(func(c *Config) *bool { return &c.Maintain.DryRun })}
}

func unsafe(usage string) setting {
	return setting{name: "unsafe", flagOnly: true, usage: usage,
		set: toggle(func(c *Config) *bool { return &c.Maintain.Unsafe })}
}

// verbose returns the setting --verbose, with the short form -v.
func verbose() setting {
	return setting{name: "verbose", flagOnly: true, short: "v", usage: "List each snapshot and the first files.",
		set: toggle(func(c *Config) *bool { return &c.Maintain.Verbose })}
}

func sample() setting {
	return setting{name: "sample", value: "NUMBER", preset: "10", flagOnly: true,
		usage: "Maximum number of files to list, up to 1000.",
		set: func(c *Config, v []string) (err error) {
			c.Maintain.Sample, err = strconv.Atoi(v[0])
			if err != nil || c.Maintain.Sample < 0 || c.Maintain.Sample > 1000 {
				err = fmt.Errorf("%q is not a number from 0 to 1000", v[0])
			}
			return err
		}}
}

// validateRun refuses settings of maintain run that do not go together.
func validateRun(c Config, faults *usageError) {
	validateStopped(c, faults)
	words := c.Maintain
	isTable := words.Object.Table != ""
	switch {
	case !isTable && words.DryRun == words.Adopt:
		faults.addf("maintain run: a warehouse takes either --dry-run or --adopt")
	case !isTable && words.ByPolicy:
		faults.addf("--by-policy: policies are about tables")
	case isTable && words.Unsafe:
		faults.addf("--unsafe: only the dry run of a warehouse can be unsafe")
	case words.Kind == kindCompaction && !words.ByPolicy:
		faults.addf("maintain run compaction: give --by-policy; the settings of compaction are those of the policies")
	case words.ByPolicy:
		refuseOthers(c, faults, "maintain run --by-policy takes all settings from the policies")
	case !isTable && words.Adopt:
		refuseOthers(c, faults, "maintain run orphans warehouse --adopt begins no job", "adopt")
	case !isTable:
		refuseOthers(c, faults, "maintain run orphans warehouse --dry-run only prints files", "older-than", "unsafe")
	case words.Kind == KindSnapshots:
		refuseOthers(c, faults, "maintain run snapshots finds no orphans", namesOf(snapshotSettings())...)
	default:
		refuseOthers(c, faults, "maintain run orphans expires no snapshots", namesOf(orphanSettings())...)
	}
}

// refuseOthers refuses settings of jobs on the command line that are not in allowed, because they
// would have no effect. why is the text of the fault.
func refuseOthers(c Config, faults *usageError, why string, allowed ...string) {
	for _, name := range namesOf(slices.Concat(snapshotSettings(), orphanSettings())) {
		if slices.Contains(c.Flags, name) && !slices.Contains(allowed, name) {
			faults.addf("--%s has no effect here: %s", name, why)
		}
	}
}

// validateJob refuses settings of maintain job that its action does not take.
func validateJob(c Config, faults *usageError) {
	validateStopped(c, faults)
	words := c.Maintain
	if words.Reason != "" && words.Change != "quarantine" && words.Change != "pause" {
		faults.addf("--reason: only maintain job quarantine and maintain job pause take a reason")
	}
	if slices.Contains(c.Flags, "confirm") && words.Change != "retry" {
		faults.addf("--confirm: only maintain job retry can be confirmed")
	}
}

func snapshotSettings() []setting {
	return []setting{
		{name: "max-snapshot-age", value: "DURATION", preset: "120h", flagOnly: true,
			usage: "Minimum age at which a snapshot of a branch expires, except the last ones.",
			set:   span(func(c *Config) *time.Duration { return &c.Maintain.MaxSnapshotAge })},
		{name: "min-snapshots", value: "NUMBER", preset: "1", flagOnly: true,
			usage: "Number of snapshots of each branch that always stay.",
			set: func(c *Config, v []string) (err error) {
				c.Maintain.MinSnapshots, err = strconv.Atoi(v[0])
				if err != nil || c.Maintain.MinSnapshots < 1 {
					err = fmt.Errorf("%q is not a number above zero", v[0])
				}
				return err
			}},
		{name: "max-ref-age", value: "DURATION", preset: "0s", flagOnly: true,
			usage: "Maximum age of the snapshot of a tag, or of a branch other than main. Refs with older " +
				"snapshots are removed. 0s means no limit.",
			set: span(func(c *Config) *time.Duration { return &c.Maintain.MaxRefAge })},
		{name: "delay", value: "DURATION", preset: "24h", flagOnly: true,
			usage: "How long files stay after their snapshots have expired, for queries in progress.",
			set:   span(func(c *Config) *time.Duration { return &c.Maintain.Delay })},
		{name: "keep-files", flagOnly: true, usage: "Only remove the snapshots from the table, without deleting " +
			"files.",
			set: toggle(func(c *Config) *bool { return &c.Maintain.KeepFiles })},
	}
}

func orphanSettings() []setting {
	return []setting{
		{name: "older-than", value: "DURATION", flagOnly: true,
			usage: "Minimum age of an orphan when it is found: at least 24h, and 72h by default. For a " +
				"warehouse: at least 168h, which is also the default.",
			set: func(c *Config, values []string) error {
				err := span(func(c *Config) *time.Duration { return &c.Maintain.OlderThan })(c, values)
				if err == nil && c.Maintain.OlderThan == 0 {
					err = fmt.Errorf("%q is too short: an orphan is at least a day old", values[0])
				}
				return err
			}},
		{name: "quarantine", value: "DURATION", preset: "240h", flagOnly: true,
			usage: "How long an orphan stays after it has been found.",
			set:   span(func(c *Config) *time.Duration { return &c.Maintain.Quarantine })},
		{name: "equal-authorities", flagOnly: true,
			usage: "Keep files whose paths differ from the table's only in scheme or bucket, and do not block the job.",
			set:   toggle(func(c *Config) *bool { return &c.Maintain.EqualAuthorities })},
		confirmSetting("Confirm that most files of the table are orphans."),
		{name: "adopt", flagOnly: true,
			usage: "Declare that files older than the table's location belong to the table; needs the privilege " +
				"purge on the warehouse. For a warehouse: let this store remove its orphans.",
			set: toggle(func(c *Config) *bool { return &c.Maintain.Adopt })},
		unsafe("For a warehouse: allow younger files, which may belong to tables that are being created."),
	}
}

// span returns the set function of a setting that takes a time span of 0 or more, in whole seconds.
func span(field func(*Config) *time.Duration) func(*Config, []string) error {
	return func(c *Config, values []string) error {
		d, err := time.ParseDuration(values[0])
		if err != nil || d < 0 || d%time.Second != 0 {
			return fmt.Errorf("%q is not a time span such as 24h, in whole seconds", values[0])
		}
		*field(c) = d
		return nil
	}
}

// policySettings returns the settings of maintain set.
func policySettings() []setting {
	return []setting{
		{name: "set", value: "NAME=VALUE", list: true, flagOnly: true,
			usage: "Setting for on, such as maxSnapshotAgeHours=48. Other settings have their defaults. May be " +
				"repeated.",
			set: pairs(func(c *Config) *map[string]string { return &c.Maintain.Settings })},
		unsafe("Allow settings below the values that are safe for readers and writers in progress."),
		dryRun(),
	}
}

// validateSet refuses settings of maintain set that are only allowed with the word on.
func validateSet(c Config, faults *usageError) {
	validateStopped(c, faults)
	if words := c.Maintain; words.Set != SetOn && (len(words.Settings) > 0 || words.Unsafe || words.DryRun) {
		faults.addf("maintain set: only on takes --set, --unsafe and --dry-run")
	}
}
