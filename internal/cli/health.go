package cli

import "time"

// The values of --fail-on.
const (
	FailOnWarn  = "warn"
	FailOnBad   = "bad"
	FailOnNever = "never"
)

// healthCommand returns the command that reports the health of a table.
func healthCommand() command {
	return command{
		operands: []Operand{OperandName},
		name:     "health", operand: "TABLE", words: oneName(false, nil), connects: true,
		summary: "check whether a table is in good shape",
		settings: forPeople(
			setting{name: "deep", flagOnly: true,
				usage: "Also read the manifests, for the sizes of files and for partitions. Reads at most " +
					"1,000,000 files, for at most 60 seconds.",
				set: personToggle(func(w *PeopleWords) *bool { return &w.Deep })},
			setting{name: "fail-on", value: "warn|bad|never", preset: FailOnBad, flagOnly: true,
				usage: "Exit with 3 if a finding has this level or a worse one.",
				set: one(oneOf(FailOnWarn, FailOnBad, FailOnNever), "warn, bad or never",
					func(c *Config) *string { return &c.People.FailOn })}),
		text: `Prints findings about the files, snapshots and manifests of a table, each with its level: ok, warn
or bad. Below each finding that is not ok is a remedy to type. With -o wide, the limits are printed
too.

  small files   50 or more files, with a mean size below 25 % of write.target-file-size-bytes; bad
                below 5 %
  deletes       more than 5 % of the rows are deleted by delete files; bad above 20 %
  snapshots     more than 1,000
  metadata      a metadata file of more than 16 MiB
  manifests     more than 500, or 50 or more with a mean size below 512 KiB

With --deep, the command also counts the files and examines the partitions. It reports crowded
partitions by the same limits as for all files. It also reports partitions with a single file below
32 MB, if there are 50 or more of them and they are more than half.
` + namesText,
	}
}

// The values of top's --sort.
const (
	SortCommits   = "commits"
	SortLoads     = "loads"
	SortConflicts = "conflicts"
	SortWait      = "wait"
)

// topCommand returns the command that shows the activity of a node.
func topCommand() command {
	return command{
		name: "top", connects: true, summary: "show the activity of a server",
		settings: forPeople(
			setting{name: "every", value: "DURATION", flagOnly: true,
				usage: "Print again after this time, 1s to 1h, until the command is interrupted. Default: print once.",
				set: one(within(time.ParseDuration, time.Second, time.Hour), "a duration from 1s to 1h",
					func(c *Config) *time.Duration { return &c.People.Every })},
			setting{name: "sort", value: "commits|loads|conflicts|wait", preset: SortCommits, flagOnly: true,
				usage: "Order of the tables, the highest first.",
				set: one(oneOf(SortCommits, SortLoads, SortConflicts, SortWait), "commits, loads, conflicts or wait",
					func(c *Config) *string { return &c.People.Sort })}),
		text: `Prints the activity of one node: commits, refused commits and loads a second, how long they take,
and the twenty busiest tables. The node is the one that answers; behind a proxy, that can be a
different node each time. Rates cover the last ten seconds, and rates of tables about half a minute.
One in sixteen loads is measured. Needs the privilege operate.
`,
	}
}
