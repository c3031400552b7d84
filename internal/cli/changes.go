package cli

import (
	"strconv"
	"time"
)

// changesCommand returns the command that prints the feed of changes.
func changesCommand() command {
	return command{
		name: "changes", operand: "[NAME]", words: oneName(true, nil), connects: true, validate: validateChanges,
		summary: "print all changes, live",
		settings: forPeople(
			setting{name: "lines", short: "n", value: "NUMBER", preset: "20", flagOnly: true,
				usage: "How many of the last events to print, up to 1000.",
				set: one(within(strconv.Atoi, 1, 1000), "a number from 1 to 1000",
					func(c *Config) *int { return &c.People.Tail })},
			setting{name: "since", value: "TIME", flagOnly: true,
				usage: "Print the events since a time such as 2026-11-21T10:00:00Z, or since 2h ago.",
				set:   personText(func(w *PeopleWords) *string { return &w.Since })},
			setting{name: "follow", short: "f", flagOnly: true, usage: "Keep printing events as they arrive.",
				set: personToggle(func(w *PeopleWords) *bool { return &w.Follow })},
			setting{name: "state", value: "FILE", flagOnly: true,
				usage: "Continue from the position in this file, and store the new position there. If the file " +
					"does not exist, begin with --since, or with the first known event.",
				set: personText(func(w *PeopleWords) *string { return &w.State })},
			setting{name: "kind", value: "KIND", flagOnly: true,
				usage: "Only events of these kinds of objects, separated by commas: warehouse, namespace, table, " +
					"view, principal, role or grants.",
				set: personText(func(w *PeopleWords) *string { return &w.Kind })},
			setting{name: "operation", value: "OPERATION", list: true, flagOnly: true,
				usage: "Only events with this operation, such as drop-table. May be repeated.",
				set: func(c *Config, v []string) error {
					c.People.Operations = v
					return nil
				}},
			setting{name: "by", value: "CALLER", list: true, flagOnly: true,
				usage: "Only events of this caller, such as key:etl. May be repeated.",
				set: func(c *Config, v []string) error {
					c.People.Callers = v
					return nil
				}}),
		text: `Prints the last events, one on each line. An event is the effect of a change on a table, a view, a
namespace, a warehouse, or access. With a name, the command prints only events of that table or
view, or of that namespace and everything in it. Write a trailing dot after a namespace that is
inside another one. Dropped objects keep their events.

With --state, the command continues where it stopped. It stores the position after it has printed
the events. So each event is printed at least once, and you can recognize a repeated event by its
id. If the server no longer knows the events after the position, the command fails, and prints the
position from which to continue.
` + namesText,
	}
}

func validateChanges(c Config, faults *usageError) {
	since := c.People.Since
	if since == "" {
		return
	}
	_, notTime := time.Parse(time.RFC3339, since)
	if _, notSpan := time.ParseDuration(since); notTime != nil && notSpan != nil {
		faults.addf("--since: %q is neither a time such as 2026-11-21T10:00:00Z nor a time span such as 2h", since)
	}
}
