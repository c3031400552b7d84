package cli

import (
	"slices"
	"strconv"
)

// The kinds of maintenance that a policy can ask for.
var maintainKinds = []string{KindSnapshots, KindOrphans, "compaction"}

const policyText = `
An object is the word server, or a kind and a name: warehouse W, namespace W.A.B, table W.A.B.T. A
part with a dot in it stands in double quotes.
` + accessText

// caringCommands returns the commands about the maintenance that tables get by themselves.
func caringCommands(actions Actions) []command {
	settings := append(nodeSettings(), askedServer("Ask the server that runs at this address."), token())
	with := func(more ...setting) []setting { return slices.Concat(settings, more) }
	policies := func(change, summary, about string, more ...setting) command {
		return command{
			name: "maintain " + change, operand: "OBJECT", summary: summary, words: wordsOfMaintained(change),
			settings: with(more...), validate: validateStopped, run: actions.MaintainPolicy, text: about + policyText,
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
`,
			kind, setting{name: "set", value: "NAME=VALUE", list: true, flagOnly: true,
				usage: "A setting, such as maxSnapshotAgeHours=48. Others have their defaults.",
				set:   pairs(func(c *Config) *map[string]string { return &c.Maintain.Settings })},
			setting{name: "unsafe", flagOnly: true,
				usage: "Allow settings that are below what is safe for readers and writers under way.",
				set:   one(strconv.ParseBool, "true or false", func(c *Config) *bool { return &c.Maintain.Unsafe })}),
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
			name: "maintain blockers", summary: "list the maintenance that is blocked", settings: with(),
			validate: validateStopped, run: actions.MaintainBlockers,
			text: `Prints what is blocked until somebody mends it and says maintain now, or maintain job retry. It
exits with 1 if there is anything.
` + accessText,
		},
	}
}
