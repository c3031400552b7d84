package cli

import "time"

// The values of --fail-on.
const (
	FailOnWarn  = "warn"
	FailOnBad   = "bad"
	FailOnNever = "never"
)

// healthCommand returns the command that judges a table.
func healthCommand() command {
	return command{
		operands: []Operand{OperandName},
		name:     "health", operand: "TABLE", words: oneName(false, nil), connects: true,
		summary: "is a table in good shape?",
		settings: forPeople(
			setting{name: "deep", flagOnly: true,
				usage: "Also read the manifests: sizes of files, and partitions. At most 1,000,000 files, and 60 " +
					"seconds.",
				set: personToggle(func(w *PeopleWords) *bool { return &w.Deep })},
			setting{name: "fail-on", value: "warn|bad|never", preset: FailOnBad, flagOnly: true,
				usage: "Exit with 3 if a finding has this level or a worse one.",
				set: one(oneOf(FailOnWarn, FailOnBad, FailOnNever), "warn, bad or never",
					func(c *Config) *string { return &c.People.FailOn })}),
		text: `Prints findings about the files, snapshots and manifests of a table, each with its level: ok, warn or
bad. Below a finding that is not ok is what to type against it. With -o wide also the limits.

  small files        a mean below 25 % of write.target-file-size-bytes, with 50 files or more; bad below 5 %
  deletes            more than 5 % of the rows are deleted by delete files; bad above 20 %
  snapshots          more than 1,000
  metadata           a metadata file of more than 16 MiB
  manifests          more than 500, or a mean below 512 KiB with 50 or more

With --deep the files are counted, and partitions are judged: crowded ones as all files are, and those
with one file below 32 MB if there are 50 or more and they are more than half.
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

// topCommand returns the command that shows what a node does.
func topCommand() command {
	return command{
		name: "top", connects: true, summary: "the server at work",
		settings: forPeople(
			setting{name: "every", value: "DURATION", flagOnly: true,
				usage: "Print again after this time, 1s to 1h, until the command is interrupted. Default: print once.",
				set: one(within(time.ParseDuration, time.Second, time.Hour), "a duration from 1s to 1h",
					func(c *Config) *time.Duration { return &c.People.Every })},
			setting{name: "sort", value: "commits|loads|conflicts|wait", preset: SortCommits, flagOnly: true,
				usage: "Order of the tables, the highest first.",
				set: one(oneOf(SortCommits, SortLoads, SortConflicts, SortWait), "commits, loads, conflicts or wait",
					func(c *Config) *string { return &c.People.Sort })}),
		text: `Prints what one node does: commits, refused commits and loads a second, how long they take, and the
twenty tables with the most of them. The node is the one that answers: a proxy may choose another one
each time. Rates cover the last ten seconds, and rates of tables about half a minute. One of sixteen
loads is measured. Needs the privilege operate.
`,
	}
}
