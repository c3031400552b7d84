package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/internal/cli"
	"moorage/maintenance/retention"
	"moorage/management/client"
	"moorage/registry"
)

// Limits of the findings about a node. Beyond them a finding is a warning.
const (
	// storeSlow is the longest time that a read or a write of the store may take. With an embedded
	// store, a read takes microseconds, and a write takes one sync of the disk. A database in the
	// same building takes milliseconds.
	storeSlow = 100 * time.Millisecond
	// clocksApart is the maximum difference between the node's clock and the store's. Nodes use
	// their own clocks for times in records.
	clocksApart = 10 * time.Second
	// logSlack is how much older than --change-retention the oldest change may be. Changes are
	// removed once a day, and only while a node runs.
	logSlack = 3 * 24 * time.Hour
	// credentialWarn is how long before the end of its key a caller gets a warning.
	credentialWarn = 7 * 24 * time.Hour
)

// nodeFacts has the facts from which the findings about a node and its store are made.
type nodeFacts struct {
	versions  []string      // the version of each node that this node knows
	read      time.Duration // how long a read of the store took
	write     time.Duration // how long the last write of the node took; zero before the first one
	unread    error         // why the store cannot be read, or nil
	unwritten error         // why the store accepts no writes, or nil
	apart     time.Duration // the node's clock minus the store's; zero if the store has none
	logAge    time.Duration // age of the oldest change; zero if there is none
	retention time.Duration // how long changes are kept
	config    cli.Config
}

// lookAtNode reads the facts about a node. It changes nothing. So the time of a write is that of
// the node's last write for a client or for its own work.
func (n *node) lookAtNode(ctx context.Context) nodeFacts {
	f := nodeFacts{
		versions: n.peers.versions(), config: n.config,
		retention: retention.ChangesKept(n.config.ChangeRetention,
			catalog.ChangeRetentionMin(n.config.IdempotencyLifetime)),
	}
	began := time.Now()
	oldest, err := n.store.Changes(ctx, 0, 1)
	f.read, f.unread = time.Since(began), err
	f.write = time.Duration(n.metered.lastWrite.Load())
	if len(oldest) > 0 && oldest[0].Change.Time.Before(began) && !oldest[0].Change.Time.IsZero() {
		f.logAge = began.Sub(oldest[0].Change.Time)
	}
	if checker, ok := n.store.(registry.HealthChecker); ok {
		f.unwritten = checker.Healthy(ctx)
	}
	if clock, ok := n.store.(registry.Clock); ok {
		asked := time.Now()
		if at, err := clock.Time(ctx); err == nil {
			f.apart = at.Sub(asked.Add(time.Since(asked) / 2))
		}
	}
	return f
}

// findings returns the findings that follow from the facts.
func (f nodeFacts) findings() []client.Finding {
	return append([]client.Finding{f.server(), f.stored(), f.clock(), f.log()}, f.settings()...)
}

func (f nodeFacts) server() client.Finding {
	distinct := slices.Compact(slices.Sorted(slices.Values(f.versions)))
	if len(distinct) > 1 {
		return client.Finding{
			Level: client.LevelWarn, What: "server",
			Fact: fmt.Sprintf("%s run different versions: %s", moorage.Counted(len(f.versions), "node"),
				strings.Join(distinct, ", ")),
			Remedy: "End the upgrade: run one version on all nodes",
		}
	}
	fact := version()
	if len(f.versions) > 1 {
		fact = fmt.Sprintf("%s, %d nodes alike", fact, len(f.versions))
	}
	return client.Finding{Level: client.LevelOK, What: "server", Fact: fact}
}

func (f nodeFacts) stored() client.Finding {
	finding := client.Finding{
		Level: client.LevelOK, What: "store",
		Fact: fmt.Sprintf("takes writes; a read took %s", f.read.Round(10*time.Microsecond)),
	}
	if f.write > 0 {
		finding.Fact += fmt.Sprintf(", the last write %s", f.write.Round(10*time.Microsecond))
	}
	switch {
	case f.unread != nil:
		finding.Level, finding.Fact = client.LevelBad, "cannot be read: "+moorage.OneLine(f.unread.Error())
	case f.unwritten != nil:
		finding.Level, finding.Fact = client.LevelBad, "takes no writes: "+moorage.OneLine(f.unwritten.Error())
	case f.read > storeSlow:
		finding.Level = client.LevelWarn
		finding.Remedy = "Look at the load of the database and at the way to it: every request reads the store"
		return finding
	case f.write > storeSlow:
		finding.Level = client.LevelWarn
		finding.Remedy = "Look at the load of the store's disk or database: every commit waits for a write"
		return finding
	default:
		return finding
	}
	finding.Remedy = "Repair the store or its disk; the log of the server has more"
	return finding
}

func (f nodeFacts) clock() client.Finding {
	apart := max(f.apart.Abs().Round(time.Millisecond), time.Millisecond)
	finding := client.Finding{
		Level: client.LevelOK, What: "clocks", Fact: fmt.Sprintf("node and store within %s", apart),
	}
	if apart > clocksApart {
		finding.Level, finding.Fact = client.LevelWarn, fmt.Sprintf("node and store are %s apart", apart)
		finding.Remedy = "Synchronise the clocks of all machines, as with NTP"
	}
	return finding
}

func (f nodeFacts) log() client.Finding {
	finding := client.Finding{
		Level: client.LevelOK, What: "changes",
		Fact: fmt.Sprintf("kept for %s; the oldest is %s old", lengthOf(f.retention), lengthOf(f.logAge)),
	}
	if f.logAge > f.retention+logSlack {
		finding.Level = client.LevelWarn
		finding.Remedy = "Old changes are not removed: keep a node running, and look at its log"
	}
	return finding
}

// lengthOf returns a duration in words: in days, hours or minutes, rounded down.
func lengthOf(span time.Duration) string {
	switch {
	case span < time.Minute:
		return "less than a minute"
	case span < 2*time.Hour:
		return moorage.Counted(int(span/time.Minute), "minute")
	case span < 48*time.Hour:
		return moorage.Counted(int(span/time.Hour), "hour")
	}
	return moorage.Counted(int(span/(24*time.Hour)), "day")
}

// settings returns a warning for each expensive setting.
func (f nodeFacts) settings() (found []client.Finding) {
	warn := func(setting, fact, remedy string) {
		found = append(found, client.Finding{
			Level: client.LevelWarn, What: "setting " + setting, Fact: fact, Remedy: remedy,
		})
	}
	if f.config.LogLevel < slog.LevelInfo {
		warn("--log-level", "each request writes a line to the log", "Start the server with --log-level info")
	}
	if f.config.AuditReads == 1 {
		warn("--audit-reads", "each read writes a line to the audit log", "Start the server with --audit-reads summed")
	}
	if f.config.Store == cli.StoreMemory {
		warn("--store", "the store is in memory: all tables are gone when the server ends",
			"Start the server with --data")
	}
	if f.config.Maintenance == cli.MaintenanceOff {
		warn("--maintenance", "this node runs no maintenance", "Keep another node with --maintenance on running")
	}
	return found
}

// callerFinding describes the caller of doctor, and the end of its credential. It warns only about
// keys: clients renew tokens by themselves, but an operator must renew a key.
func callerFinding(caller moorage.Caller, now time.Time) client.Finding {
	finding := client.Finding{Level: client.LevelOK, What: "caller", Fact: moorage.NameOf(caller.Name)}
	if caller.Ends.IsZero() {
		return finding
	}
	finding.Fact += "; its credential ends " + caller.Ends.UTC().Format(time.RFC3339)
	if caller.Source == moorage.SourceKey && caller.Ends.Sub(now) < credentialWarn {
		finding.Level = client.LevelWarn
		finding.Remedy = fmt.Sprintf("moorage key rotate %s %s", moorage.ShellWord(caller.Name), caller.KeyID)
	}
	return finding
}
