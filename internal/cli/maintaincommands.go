package cli

import (
	"fmt"
	"strconv"
	"time"
)

const maintainText = `
A table is called by warehouse, namespace and name, such as default.sales.orders. With --uri the
command asks the server that runs there. Without it the command opens the store itself. If that is a
folder, its server must be stopped; the server carries on with the jobs when it starts.
`

func maintainCommands(actions Actions) []command {
	byHand := append(snapshotSettings(), orphanSettings()...)
	run := append(runSettings(), verbose(), setting{name: "adopt", flagOnly: true,
		usage: "Files from before the table lived at its locations are its own; takes purge on the warehouse.",
		set:   func(c *Config, _ []string) error { c.Maintain.Adopt = true; return nil }})
	return []command{
		{
			name: "maintain plan", operand: "snapshots|orphans TABLE",
			words:    wordsOfMaintain(KindSnapshots, KindOrphans),
			summary:  "say what would go, and why the rest stays",
			settings: asking(append(byHand, planSettings()...)...), validate: validateStopped,
			run: actions.MaintainPlan,
			text: `Prints what maintain run would do now, and changes nothing: how many snapshots, branches and tags
would expire, why the others stay, and how many files would be deleted. With -v it names each. It
reads what the job would read. What the table says itself wins over the flags: by its properties
history.expire.max-snapshot-age-ms, .min-snapshots-to-keep and .max-ref-age-ms, and by the limits of
each branch and tag. With --by-policy the settings are those of the policies about the table.
` + maintainText,
		},
		{
			name: "maintain run", operand: "snapshots|orphans TABLE",
			words:    wordsOfMaintain(KindSnapshots, KindOrphans),
			summary:  "expire snapshots, or find orphans, and delete files later",
			settings: asking(append(byHand, run...)...), validate: validateStopped,
			run: actions.MaintainRun,
			text: `For snapshots, removes from the table what maintain plan prints, at once, and makes a job that
deletes the files which only that has reached, after --delay. For orphans, makes a job that lists the files
in the locations of the table which no version of it reaches; it deletes them after --quarantine if
they are still not reached. Until then maintain job cancel keeps all files. Files from before the table
lived there stay, and are counted, unless --adopt says once that they are its own.

Policies have no say in it, but pauses do. Nothing is deleted of a table with gc.enabled=false or
moorage.maintenance.hold=true, nor of an encrypted one. Metadata files, and files outside the locations
of the table, stay in any case.
` + maintainText,
		},
		{
			name: "maintain orphans", operand: "[adopt WAREHOUSE]", words: wordsOfMaintainOrphans,
			summary:  "report files outside of all tables of a warehouse",
			settings: asking(outsideSettings()...), validate: validateOrphans, run: actions.MaintainOrphans,
			text: `With --warehouse, prints which files of a warehouse lie outside the locations of all tables and
views, and are reached by none of them: what is left of tables that were never made. It deletes nothing.
Look at the files, and delete them with the tools of the storage. Tables of other catalogs that have
files there, and their metadata elsewhere, are not known to this store.

Dropped tables that can come back count as tables. Each folder with a metadata file stays, with all
that the file names: somebody may register it. Names that begin with _ or . stay, and the folders of
other warehouses within this one are left out. The manifests of all tables of the store are read. If
one cannot be, the command says so, names no file, and exits with 1.

With adopt, makes this store the one that removes orphans in the folder of a warehouse, and prints
the id of the one that did. Each store would take the files of the other for orphans. So the first
one that looks for orphans writes its id to ~moorage/owner, and others are refused. A restored
backup is another store. Say this once no other store uses tables there.
` + accessText,
		},
		{
			name: "maintain work", summary: "run a program for each table that is due",
			settings: workSettings(), run: actions.MaintainWork,
			text: `Claims work from the server at --uri, table by table, and runs the program that --exec names for
each: an engine that compacts the table, for example. Each piece comes with a lease, which is renewed
as long as the program runs. Exit status 0 says that the work is done, anything else that it failed.
Work that failed is due again a minute later, then two, and blocked after five times.
A command that is stopped gives its work back, which is no failure.

The program gets no arguments, and no shell is in between. Names are in its environment, as for
moorage lease run, and in the JSON file that MOORAGE_JOB names. Besides there are MOORAGE_KIND and
MOORAGE_SETTINGS, the settings as JSON. Never put a name into the text of a script or of SQL.

Its commits must send MOORAGE_LEASE in the header X-Moorage-Lease. If the lease is lost the program
gets SIGTERM, and the server gives the work to another. The command ends at SIGINT or SIGTERM; with
--once it does one piece, or none if nothing is due.
`,
		},
		{
			name: "maintain status", operand: "TABLE", words: wordsOfMaintainTable,
			summary:  "show the jobs of a table, and those that ended",
			settings: asking(), validate: validateStopped, run: actions.MaintainStatus,
			text: "Prints the jobs of a table that are under way, and the last that ended.\n" + maintainText,
		},
		{
			name: "maintain jobs", summary: "list all jobs under way", settings: asking(),
			validate: validateStopped, run: actions.MaintainJobs,
			text: `Prints every maintenance job under way. It exits with 1 if one is blocked: then mend what it
names, and say maintain job retry.
` + maintainText,
		},
		{
			name: "maintain files", operand: "ID", words: wordsOfMaintainID,
			summary:  "list the files that a job will delete",
			settings: asking(), validate: validateStopped, run: actions.MaintainFiles,
			text: "Prints the location of each file that a job will delete, one a line.\n" + maintainText,
		},
		{
			name: "maintain job", operand: "cancel|retry|quarantine|pause|resume ID", words: wordsOfMaintainJob,
			summary: "end, retry or stop a job",
			settings: asking(setting{name: "reason", value: "TEXT", flagOnly: true,
				usage: "Why a job is put into quarantine, or paused. Both need it.",
				set:   text(func(c *Config) *string { return &c.Maintain.Reason })}, confirmSetting(
				"Of a retry: it is right that most files of the table are orphans.")),
			validate: validateStopped, run: actions.MaintainJob,
			text: `Cancel ends a job, and the files that it has not deleted stay. Retry lets a blocked job go on,
with --confirm one that is blocked because most files of the table are orphans. Quarantine blocks a
job, with --reason, until somebody cancels or retries it. Pause has a job rest where it is, with
--reason, until somebody says resume: it is no blocker, so nobody is woken.
` + maintainText,
		},
	}
}

func confirmSetting(usage string) setting {
	return setting{name: "confirm", flagOnly: true, usage: usage,
		set: func(c *Config, _ []string) error { c.Maintain.Confirm = true; return nil }}
}

// planSettings are the settings of maintain plan, in addition to the settings of jobs.
func planSettings() []setting {
	return []setting{
		{name: "by-policy", flagOnly: true,
			usage: "Take the settings of the policies about the table, in the place of all flags.",
			set:   func(c *Config, _ []string) error { c.Maintain.ByPolicy = true; return nil }},
		sample(), verbose(),
	}
}

// verbose returns the setting --verbose, which -v sets too.
func verbose() setting {
	return setting{name: "verbose", flagOnly: true, usage: "Name each snapshot, and the first of the files. Also -v.",
		set: func(c *Config, _ []string) error { c.Maintain.Verbose = true; return nil }}
}

func sample() setting {
	return setting{name: "sample", value: "NUMBER", preset: "10", flagOnly: true,
		usage: "How many files are named at most, up to 1000.",
		set: func(c *Config, v []string) (err error) {
			c.Maintain.Sample, err = strconv.Atoi(v[0])
			if err != nil || c.Maintain.Sample < 0 || c.Maintain.Sample > 1000 {
				err = fmt.Errorf("%q is not a number from 0 to 1000", v[0])
			}
			return err
		}}
}

// outsideSettings are the settings of maintain orphans.
func outsideSettings() []setting {
	return []setting{
		{name: "warehouse", value: "NAME", flagOnly: true, usage: "Whose files are looked at.",
			set: text(func(c *Config) *string { return &c.Maintain.Outside })},
		{name: "older-than", value: "DURATION", preset: "168h", flagOnly: true,
			usage: "How old a file is at least; seven days or more.",
			set:   span(func(c *Config) *time.Duration { return &c.Maintain.OlderThan })},
		{name: "unsafe", flagOnly: true,
			usage: "Allow younger files. They may belong to tables that are being made.",
			set:   one(strconv.ParseBool, "true or false", func(c *Config) *bool { return &c.Maintain.Unsafe })},
		sample(),
	}
}

// validateOrphans requires either a warehouse to search or a warehouse to adopt.
func validateOrphans(c Config, faults *usageError) {
	validateStopped(c, faults)
	if (c.Maintain.Warehouse == "") == (c.Maintain.Outside == "") {
		faults.addf("takes either --warehouse NAME, or adopt and the name of a warehouse")
	}
}

// runSettings are the settings of maintain run, in addition to the settings of jobs.
func runSettings() []setting {
	return []setting{{name: "dry-run", flagOnly: true, usage: "Print what maintain plan prints, and change nothing.",
		set: func(c *Config, _ []string) error {
			c.Maintain.DryRun, c.Maintain.Sample = true, 10
			return nil
		}}}
}

func snapshotSettings() []setting {
	return []setting{
		{name: "max-snapshot-age", value: "DURATION", preset: "120h", flagOnly: true,
			usage: "How old a snapshot of a branch grows at least, besides the last ones.",
			set:   span(func(c *Config) *time.Duration { return &c.Maintain.MaxSnapshotAge })},
		{name: "min-snapshots", value: "NUMBER", preset: "1", flagOnly: true,
			usage: "How many snapshots of each branch stay in any case.",
			set: func(c *Config, v []string) (err error) {
				c.Maintain.MinSnapshots, err = strconv.Atoi(v[0])
				if err != nil || c.Maintain.MinSnapshots < 1 {
					err = fmt.Errorf("%q is not a number above zero", v[0])
				}
				return err
			}},
		{name: "max-ref-age", value: "DURATION", preset: "0s", flagOnly: true,
			usage: "How old the snapshot of a tag, or of a branch other than main, may be before that goes. " +
				"0: any age.",
			set: span(func(c *Config) *time.Duration { return &c.Maintain.MaxRefAge })},
		{name: "delay", value: "DURATION", preset: "24h", flagOnly: true,
			usage: "How long files stay after their snapshots expired, for queries that began before.",
			set:   span(func(c *Config) *time.Duration { return &c.Maintain.Delay })},
		{name: "keep-files", flagOnly: true, usage: "Delete no file, only take the snapshots out of the table.",
			set: func(c *Config, _ []string) error { c.Maintain.KeepFiles = true; return nil }},
	}
}

func orphanSettings() []setting {
	return []setting{
		{name: "older-than", value: "DURATION", preset: "72h", flagOnly: true,
			usage: "How old an orphan is at least when it is found; a day or more.",
			set:   span(func(c *Config) *time.Duration { return &c.Maintain.OlderThan })},
		{name: "quarantine", value: "DURATION", preset: "240h", flagOnly: true,
			usage: "How long an orphan stays after it was found.",
			set:   span(func(c *Config) *time.Duration { return &c.Maintain.Quarantine })},
		{name: "equal-authorities", flagOnly: true,
			usage: "Keep files whose paths differ from those of the table in scheme or bucket only, without asking.",
			set:   func(c *Config, _ []string) error { c.Maintain.EqualAuthorities = true; return nil }},
		confirmSetting("It is right that most files of the table are orphans."),
	}
}

// span is the set function of a setting that takes a time span of 0 or more, in whole seconds.
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

// The kinds of maintenance that a policy can enable.
var maintainKinds = []string{KindSnapshots, KindOrphans, "compaction"}

const policyText = `
An object is the word server, or a kind and a name: warehouse W, namespace W.A.B, table W.A.B.T. A
part with a dot in it stands in double quotes.
` + accessText

// caringCommands returns the commands about automatic maintenance.
func caringCommands(actions Actions) []command {
	policies := func(change, summary, about string, more ...setting) command {
		return command{
			name: "maintain " + change, operand: "OBJECT", summary: summary, words: wordsOfMaintained(change),
			settings: asking(more...), validate: validateStopped, run: actions.MaintainPolicy, text: about + policyText,
		}
	}
	kind := setting{name: "kind", value: "KIND", preset: KindSnapshots, flagOnly: true,
		usage: "Which maintenance: snapshots, orphans or compaction.",
		set: one(oneOf(maintainKinds...), "snapshots, orphans or compaction",
			func(c *Config) *string { return &c.Maintain.Kind })}
	return []command{
		policies("enable", "have tables maintained",
			`Asks for maintenance of all tables in an object, unless something nearer to a table says
otherwise. Nothing is maintained before somebody asks, and nothing else deletes files. The settings
are those of Amazon S3 Tables; see the guide "Keep tables small".

It prints first what would happen to the tables if they were due now: to 100 of them at most, for
that reads what the jobs would read. With --dry-run it prints that alone.
`,
			kind, setting{name: "set", value: "NAME=VALUE", list: true, flagOnly: true,
				usage: "A setting, such as maxSnapshotAgeHours=48. Others have their defaults.",
				set:   pairs(func(c *Config) *map[string]string { return &c.Maintain.Settings })},
			setting{name: "unsafe", flagOnly: true,
				usage: "Allow settings that are below what is safe for readers and writers under way.",
				set:   one(strconv.ParseBool, "true or false", func(c *Config) *bool { return &c.Maintain.Unsafe })},
			setting{name: "dry-run", flagOnly: true, usage: "Print what would happen, and change nothing.",
				set: func(c *Config, _ []string) error { c.Maintain.DryRun = true; return nil }}),
		policies("disable", "have tables not maintained",
			`Says for all tables in an object that they are not maintained, unless something nearer to a
table says otherwise. Jobs under way go on: end them with maintain job cancel.
`,
			kind),
		policies("inherit", "leave it to what is above an object",
			`Lets an object say nothing of a kind of maintenance. What is above it decides.
`,
			kind),
		policies("policy", "show what is known of the maintenance of an object",
			`Prints what an object itself says, and for a table each kind of maintenance with its effective
settings, who says so, and when it is due.
`),
		policies("pause", "stop the maintenance of an object",
			`Stops the maintenance of all tables in an object, also jobs that are deleting files, until it is
resumed.
`,
			setting{name: "reason", value: "TEXT", flagOnly: true, usage: "Why it is paused, for others.",
				set: text(func(c *Config) *string { return &c.Maintain.Reason })}),
		policies("resume", "let the maintenance of an object go on",
			`Ends the pause of an object. Pauses of what is above it, or in it, stay.
`),
		policies("rescan", "look at all tables of an object for what is due",
			`Has all tables in an object looked at. The server does so by itself when a policy changes.
`),
		policies("now", "have a table looked at now",
			`Has a table looked at now, also if its maintenance was blocked. Policies and pauses hold.
`,
			kind),
		{
			name: "maintain blockers", summary: "list the maintenance that is blocked", settings: asking(),
			validate: validateStopped, run: actions.MaintainBlockers,
			text: `Prints what is blocked until somebody mends it and says maintain now, or maintain job retry. It
exits with 1 if there is anything.
` + accessText,
		},
	}
}
