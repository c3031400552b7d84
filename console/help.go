package console

import (
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage/management/client"
)

// advice explains a kind of finding to an operator that may have no network and no documents.
type advice struct {
	means   string // what the finding means
	do      string // what to do next
	command shellLine
	guide   string // page of docs/guide with more, and a heading of it, such as troubleshoot.md#locks
}

// node returns the advice, folded up; nil if there is none.
func (a advice) node() g.Node {
	if a.means == "" {
		return nil
	}
	return h.Details(h.Class("advice"), h.Summary(g.Text("What this means")),
		h.P(g.Text(a.means)), h.P(g.Text(a.do)),
		g.If(a.command.text != "", h.P(copied(a.command.text))),
		h.P(h.Class("faint"), g.Text("In the documents: "), mono("docs/guide/"+a.guide)))
}

// advised is the advice on the findings whose subject begins with some words.
type advised struct {
	begins string
	advice
}

// findingAdvice returns the advice on the findings of the server.
func findingAdvice() []advised {
	return []advised{
		{"transaction", advice{
			means: "A commit of several tables has work left to do. A running server ends it within a minute. If " +
				"the finding is bad, the servers gave it up: the tables are intact, and some files remain.",
			do: "Repair the storage or the store that the reason names, then retry. An abort gives the client of a " +
				"pending transaction an error.",
			guide: "troubleshoot.md#a-transaction-that-did-not-end",
		}},
		{"task", advice{
			means: "The record of a purge is damaged, or a later version wrote it. The files of one dropped table " +
				"stay.",
			do: "If a later version wrote it, run that version again. Otherwise stop all servers, and remove the " +
				"record with moorage doctor forget.",
			command: command("moorage", "doctor", "--deep"),
			guide:   "troubleshoot.md#a-task-that-cannot-be-read",
		}},
		{"purge of ", advice{
			means: "A purge deletes the files of a dropped table. It waits until the table can no longer come " +
				"back. If the finding is bad, it failed 50 times, and the files stay.",
			do: "A purge that waits needs nothing. Otherwise repair what the reason names, most often the storage, " +
				"then retry.",
			guide: "troubleshoot.md#purges",
		}},
		{"maintenance", advice{
			means: "A record of maintenance is damaged, or a later version wrote it, so the list of blocked jobs " +
				"cannot be read. Tables without that record go on.",
			do:      "Find the record. If a later version wrote it, run that version again; else go back to a backup.",
			command: command("moorage", "doctor", "--deep"),
			guide:   "troubleshoot.md#a-record-that-cannot-be-read",
		}},
		{"problem", advice{
			means: "A record or a metadata file is missing, damaged, or contradicts another one. What does not " +
				"need it works.",
			do: "If a later version wrote it, run that version again. If a file is missing, look whether its disk " +
				"is mounted. Otherwise only a backup brings it back.",
			command: command("moorage", "doctor", "--deep"),
			guide:   "troubleshoot.md#a-record-that-cannot-be-read",
		}},
		{"not checked", advice{
			means:   "The check could not read a file, so it does not know whether that table is whole.",
			do:      "Repair the storage, and check again.",
			command: command("moorage", "doctor", "--deep"),
			guide:   "troubleshoot.md#storage-and-warehouses",
		}},
		{"server", advice{
			means: "The nodes run different versions. That is right during an upgrade, and only then.",
			do:    "Start the same version on all nodes.",
			guide: "cluster.md#upgrade-and-roll-back",
		}},
		{"store", advice{
			means: "Every request reads the store, and every commit waits for a write of it. It is slow, or it fails.",
			do: "Look at its disk or database: free space, load, and the network between it and the node. An " +
				"embedded store opens again by itself after a full disk has room.",
			guide: "troubleshoot.md#the-store",
		}},
		{"clock", advice{
			means: "Clocks of machines differ, so times in records are wrong. While a clock is in doubt, nothing " +
				"is deleted; commits and reads go on.",
			do: "Synchronise the clocks of all machines and of the storage, as with NTP. The log of the server " +
				"names them.",
			guide: "troubleshoot.md#maintenance",
		}},
		{"changes", advice{
			means: "Old changes are not deleted, so the store grows. A running node deletes them once a day.",
			do:    "Keep a node running, and look for the line “run failed” in its log.",
			guide: "troubleshoot.md#the-server-itself",
		}},
		{"setting ", advice{
			means: "A setting of this node costs much, or fits only tests.",
			do:    "Start the node again with the setting that the finding names, unless you want it so.",
			guide: "configure.md",
		}},
		{"caller", advice{
			means: "The key with which you ask ends soon. The server then refuses requests with it.",
			do:    "Rotate the key. The old secret stays valid for a day, so that clients can change to the new one.",
			guide: "troubleshoot.md#keys-and-certificates",
		}},
		{"audit", advice{
			means: "The audit log cannot be written, most likely because a disk is full. If the log is strict, the " +
				"server refuses all requests.",
			do:    "Make room on the disk, or repair the file.",
			guide: "troubleshoot.md#callers-and-the-audit-log",
		}},
		{"certificate of ", advice{
			means: "A certificate ends soon, or has ended. Clients or other nodes then refuse to connect.",
			do: "Replace the file. The server reads it within seconds, and a certificate for other nodes at its " +
				"next start.",
			guide: "troubleshoot.md#keys-and-certificates",
		}},
		{"warehouse default", advice{
			means: "There is no warehouse default yet, because its storage fails. Requests without a warehouse get " +
				"404.",
			do:    "Repair the storage, which the log names, or create the warehouse elsewhere.",
			guide: "troubleshoot.md#storage-and-warehouses",
		}},
		{"storage of warehouse ", advice{
			means: "Calls to the storage of this warehouse fail, so requests that need its files fail too. Other " +
				"warehouses go on.",
			do: "Look at the network, at the free space, and at the secret of the warehouse. The page of the " +
				"warehouse has a test of its storage.",
			guide: "troubleshoot.md#storage-and-warehouses",
		}},
		{"disk of ", advice{
			means: "This is the free space on the disk of a local folder. On a full disk commits fail, and reads work.",
			do:    "Make room before the disk is full.",
			guide: "troubleshoot.md#storage-and-warehouses",
		}},
	}
}

// adviceOn returns the advice on a finding of the server.
func adviceOn(what string) advice {
	for _, each := range findingAdvice() {
		if strings.HasPrefix(what, each.begins) {
			return each.advice
		}
	}
	_, table, isJob := strings.Cut(what, " of ") // such as "orphans of table default.harbour.ships"
	if isJob && (strings.HasPrefix(table, "table ") || strings.HasPrefix(table, "a table ")) {
		return stateAdvice()["Blocked"]
	}
	return advice{}
}

// healthAdvice returns the advice on the aspects of a table's health.
func healthAdvice() map[string]advice {
	const slow = "maintain.md#what-makes-a-table-slow"
	compact := "Compact the table. The server finds the work, and a program outside it does it."
	return map[string]advice{
		"small files": {
			means: "An engine opens each file of a scan, so many small files are slow to read.", do: compact,
			guide: slow,
		},
		"deletes": {
			means: "An engine applies delete files to the rows that it reads, so many deleted rows are slow to read.",
			do:    compact, guide: slow,
		},
		"snapshots": {
			means: "Each snapshot makes the metadata larger, and keeps files that no later one has.",
			do:    "Let the server expire old snapshots, or expire them by hand.",
			guide: "maintain.md#expire-snapshots-by-hand",
		},
		"metadata": {
			means: "Each load sends the metadata file, and each commit writes it, so a large one makes both slow.",
			do:    "Expire old snapshots: most often they take most of it.",
			guide: "maintain.md#expire-snapshots-by-hand",
		},
		"manifests": {
			means: "An engine reads the manifests before any data, so many or small ones make its planning slow.",
			do:    "Rewrite the manifests with an engine.", guide: slow,
		},
		"crowded partitions": {
			means: "A partition has many small files, so scans of that partition are slow.", do: compact, guide: slow,
		},
		"partitions with one file": {
			means: "The partitioning has more values than the data needs, so most partitions have one small file.",
			do:    "Choose a coarser partitioning, as by month instead of by day.", guide: slow,
		},
		"unreadable": {
			means: "A list of manifests, or a manifest, cannot be read. Engines cannot read the table either.",
			do: "If the storage is away, repair it. If the file is outside the allowed locations, allow its " +
				"location. If it is gone, roll back to a snapshot whose files are there.",
			guide: "undo.md",
		},
		"not read": {
			means: "Some metadata files are encrypted or outside the table's locations, so the judgement leaves " +
				"them out.",
			do: "If that is intended, do nothing.", guide: "tables.md#tables-from-another-catalog",
		},
	}
}

// stateAdvice returns the advice on the states of maintenance that wait for something.
func stateAdvice() map[string]advice {
	return map[string]advice{
		"Blocked": {
			means: "A job failed at all its tries, or an operator stopped it. The table works, and files stay that " +
				"the job was to delete or replace.",
			do: "Repair what the reason names: most often the storage, or a damaged file. Then retry it on the " +
				"page Maintenance of the table.",
			command: command("moorage", "doctor"), guide: "troubleshoot.md#maintenance",
		},
		"Failed": {
			means: "The last check of the table failed. The server tries again by itself.",
			do:    "If it fails again, repair what the reason names: most often the storage.",
			guide: "troubleshoot.md#maintenance",
		},
		"Held": {
			means: "The job is turned on, and something forbids it to delete.",
			do:    "Change what the reason names, such as a property of the table, if that is not intended.",
			guide: "maintain.md#let-the-server-maintain-tables",
		},
		"Paused": {
			means: "An operator paused maintenance. No job begins, and jobs in progress stop before their next step.",
			do:    "Find out why from the operator that the page names, then resume.",
			guide: "maintain.md#pause-retry-inspect",
		},
		"Waiting": {
			means: "The last try of a job failed, or the job waits for something. The server goes on by itself.",
			do:    "If the reason stays the same, repair what it names.", guide: "troubleshoot.md#maintenance",
		},
	}
}

// findingItem returns a finding as an item of a list. more is what a visitor can do about it.
func findingItem(level, what string, more ...g.Node) g.Node {
	look := map[string]string{client.LevelBad: "bad", client.LevelWarn: "warn", client.LevelOK: "good"}[level]
	return h.Li(badge(look, level), h.Div(h.Strong(text(what)), g.Text(" "), g.Group(more)))
}

// findingList returns the findings of the server, with what to do about each. more returns the
// links of a finding, or nil.
func findingList(findings []client.Finding, more func(f client.Finding) g.Node) g.Node {
	return h.Ul(h.Class("findings"), g.Map(findings, func(f client.Finding) g.Node {
		return findingItem(f.Level, f.What, h.Div(text(f.Fact)),
			g.If(f.Remedy != "", h.Div(copied(f.Remedy))), more(f),
			g.Iff(f.Level != client.LevelOK || f.Remedy != "", adviceOn(f.What).node))
	}))
}
