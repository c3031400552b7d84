package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"moorage"
	"moorage/access"
	"moorage/audit"
	"moorage/catalog/gate"
	"moorage/internal/cli"
	"moorage/internal/web"
	"moorage/storage/file"
)

// openAudit opens the audit log that the settings name. It does not start it.
func openAudit(c cli.Config, metrics prometheus.Registerer, logger *slog.Logger) (*audit.Log, error) {
	config := audit.Config{
		Reads: c.AuditReads, Strict: c.AuditStrict, Now: time.Now, Jitter: newJitter(), Logger: logger,
		Node: nodeName(),
	}
	switch to := c.AuditTo(); to {
	case cli.AuditOff:
	case cli.AuditStderr:
		config.Out = audit.Stream(os.Stderr)
	default:
		out, to, err := openAuditFile(c, to)
		if err != nil {
			return nil, fmt.Errorf("--audit: %w", err)
		}
		config.Out = out
		config.Free = func() (uint64, error) { return file.FreeBytes(filepath.Dir(to)) }
	}
	log := audit.New(config)
	meterAudit(metrics, log.Stats)
	return log, nil
}

// auditBytesMax is the size at which the file of the audit log is renamed.
const auditBytesMax = 1 << 30

// auditFile is a file that only this process writes.
type auditFile struct {
	*audit.File
	claim io.Closer
}

// Close closes the file, so that another process can open it.
func (f auditFile) Close() error { return errors.Join(f.File.Close(), f.claim.Close()) }

// auditNodesMax is the maximum number of nodes on one machine that can share a data folder.
const auditNodesMax = 64

// openAuditFile opens the audit log and returns its path. Nodes with one database may share their
// data folder. So without --audit, the file name contains the machine's name. Further nodes on the
// machine add a number.
func openAuditFile(c cli.Config, to string) (audit.Out, string, error) {
	names := []string{to}
	if c.Audit == "" && c.InDatabase() {
		host, err := os.Hostname()
		if err != nil {
			return nil, "", fmt.Errorf("name the audit log by this machine: %w", err)
		}
		names[0] = filepath.Join(c.Data, "audit-"+host+".log")
		for number := 2; number <= auditNodesMax; number++ {
			names = append(names, filepath.Join(c.Data, fmt.Sprintf("audit-%s-%d.log", host, number)))
		}
	}
	var refused error
	for _, name := range names {
		claim := io.Closer(io.NopCloser(nil))
		if info, err := os.Stat(name); err != nil || info.Mode().IsRegular() { // excludes pipes and devices
			if claim, refused = audit.Claim(name); errors.Is(refused, audit.ErrClaimed) {
				continue
			} else if refused != nil {
				return nil, "", refused
			}
		}
		opened, err := audit.OpenFile(name, auditBytesMax)
		if err != nil {
			return nil, "", errors.Join(err, claim.Close())
		}
		return auditFile{opened, claim}, name, nil
	}
	return nil, "", refused
}

// meterAudit registers the counters of an audit log.
func meterAudit(metrics prometheus.Registerer, stats func() audit.Stats) {
	metrics.MustRegister(
		counterOf(stats, "moorage_audit_lines_total", "Lines written to the audit log.",
			func(s audit.Stats) int64 { return int64(s.Written) }),
		counterOf(stats, "moorage_audit_dropped_total",
			"Lines of the audit log that were lost because its buffer was full. Allowed reads are dropped first.",
			func(s audit.Stats) int64 { return int64(s.DroppedReads + s.DroppedLines) }))
}

// auditNotice returns a notice for /readyz if the audit log cannot be written.
func auditNotice(log *audit.Log) map[string]string {
	if why := log.Trouble(); why != "" {
		return map[string]string{"audit": "not written: " + why}
	}
	return nil
}

// withAudit returns a readiness check that calls ready. The check also fails while a strict audit
// log cannot be written, because the server then refuses every request.
func withAudit(ready func(context.Context) error, log *audit.Log) func(context.Context) error {
	return func(ctx context.Context) error {
		if why := log.Trouble(); why != "" && log.Strict() {
			return moorage.Errorf(moorage.KindUnavailable, "The audit log is not written: %s", why)
		}
		return ready(ctx)
	}
}

// audited is an authorizer that wraps another one, and records all decisions. It is safe for
// concurrent use.
type audited struct {
	gate.Authorizer
	log *audit.Log

	mu sync.Mutex // guards made; no other lock is taken under it
	// made has the decisions of requests in progress. When a request ends, audited writes a line
	// for each of its decisions.
	made map[request][]gate.Decision
}

// request is one use of a verb in progress.
type request struct {
	id, caller string
	verb       gate.Verb
}

// requestsMax is the maximum number of requests in progress whose decisions are kept. For further
// requests, audited writes the lines before the requests end.
const requestsMax = 10_000

// newAudited returns an authorizer that refuses nothing until its Authorizer is replaced.
func newAudited(log *audit.Log) *audited {
	return &audited{Authorizer: gate.AdmitAll(), log: log, made: make(map[request][]gate.Decision)}
}

// Authorize calls the Authorizer. If the log is strict, it first refuses requests that cannot be
// recorded.
func (a *audited) Authorize(ctx context.Context, request gate.Request) error {
	if err := a.log.Room(); err != nil {
		return err
	}
	return a.Authorizer.Authorize(ctx, request)
}

// Decided keeps a decision until its request ends. It replaces an earlier decision about the same
// object, because only the last decision is based on the records that the change requires.
func (a *audited) Decided(ctx context.Context, decision gate.Decision) {
	of := request{moorage.RequestID(ctx), decision.Caller.Name, decision.Verb}
	a.mu.Lock()
	all, known := a.made[of]
	full := !known && len(a.made) >= requestsMax
	if !full {
		at := slices.IndexFunc(all, func(d gate.Decision) bool { return isSame(d, decision) })
		if at < 0 {
			all = append(all, decision)
		} else {
			all[at] = decision
		}
		a.made[of] = all
	}
	a.mu.Unlock()
	if full {
		a.log.Note(lineOf(ctx, decision))
	}
}

// isSame reports whether two decisions of a request are about the same object and the same
// privileges.
func isSame(d, other gate.Decision) bool {
	return d.Asked == other.Asked && d.Object.Kind() == other.Object.Kind() &&
		(len(d.Object.Path) == 0 || d.Object.Path[0].ID == other.Object.Path[0].ID)
}

// Audit writes a line for each decision of the request, or for each object if there was no
// decision.
func (a *audited) Audit(ctx context.Context, asked gate.Request, outcome error) {
	a.Authorizer.Audit(ctx, asked, outcome)
	of := request{moorage.RequestID(ctx), asked.Caller.Name, asked.Verb}
	a.mu.Lock()
	made := a.made[of]
	delete(a.made, of)
	a.mu.Unlock()
	if errors.Is(outcome, audit.ErrNoRoom) {
		return
	}
	row, _ := asked.Verb.Row()
	isRead := row.Reads && outcome == nil
	if isRead && len(made) == 0 && !a.log.Writes() {
		return
	}
	var lines []audit.Line
	ended := func(line audit.Line) {
		if outcome != nil {
			line.Status = web.FailureOf(moorage.KindOf(outcome)).Status
		}
		line.Sampled = row.Reads && line.Decision == audit.Allowed
		if !row.Reads && line.Decision == audit.Allowed {
			line.Outcome = outcomeOfChange(outcome)
		}
		lines = append(lines, line)
	}
	defer func() {
		if asked.Done != nil {
			addEffects(lines, asked.Done())
		}
		for _, line := range lines {
			a.log.Note(line)
		}
	}()
	for _, decision := range made {
		if isRead && a.isCounted(decision) {
			continue
		}
		ended(lineOf(ctx, decision))
	}
	if len(made) > 0 {
		return
	}
	line := lineFrom(ctx, asked.Caller, asked.Verb)
	line.Decision, line.Object.Kind = decisionOf(outcome), row.On.String()
	if len(asked.On) == 0 {
		ended(line)
	}
	for _, on := range asked.On {
		line.Object.Warehouse, line.Object.Namespace, line.Object.Name = on.Warehouse, on.Namespace, on.Name
		ended(line)
	}
}

// isCounted reports whether the log only counts a read, together with earlier ones, and writes no
// line for it.
func (a *audited) isCounted(d gate.Decision) bool {
	if d.Outcome != access.Allow || len(d.Object.Path) == 0 {
		return false
	}
	read := audit.Read{Caller: d.Caller.Name, Operation: string(d.Verb), Kind: d.Object.Kind().String()}
	read.ID = d.Object.Path[0].ID.String()
	return a.log.AddRead(read)
}

// decisionOf returns the decision, allowed or denied, about a request that ended with outcome.
func decisionOf(outcome error) string {
	switch kind := moorage.KindOf(outcome); {
	case outcome == nil:
	case moorage.IsHidden(outcome):
		return access.Hidden.String()
	case kind == moorage.KindForbidden, kind == moorage.KindNotAuthorized:
		return access.Forbid.String()
	}
	return access.Allow.String()
}

// lineFrom returns a line that has only the caller and the operation.
func lineFrom(ctx context.Context, caller moorage.Caller, v gate.Verb) audit.Line {
	return audit.Line{
		Event: audit.Decision, RequestID: moorage.RequestID(ctx), Caller: caller.Name, Via: caller.Via,
		Source: string(caller.Source), Address: caller.Address, Operation: string(v), Key: caller.KeyID,
	}
}

// lineOf returns the line of a decision.
func lineOf(ctx context.Context, d gate.Decision) audit.Line {
	line := lineFrom(ctx, d.Caller, d.Verb)
	line.Object.Kind = d.Object.Kind().String()
	if len(d.Object.Path) > 0 {
		ident := d.Object.Ident
		line.Object.Warehouse, line.Object.Namespace, line.Object.Name = ident.Warehouse, ident.Namespace, ident.Name
		line.Object.ID = d.Object.Path[0].ID.String()
	}
	line.Asked, line.Missing = d.Asked.Words(), d.Missing.Words()
	line.Decision, line.Epoch, line.Took = d.Outcome.String(), d.Epoch, d.Took
	line.Through, line.Ignored = namesOf(d.Through), namesOf(d.Ignored)
	if d.Walk.AsOwner {
		line.As = cmp.Or(d.Walk.Owner, "nobody")
	}
	if len(d.Through) > d.Walk.Step {
		line.RefusedAt = line.Through[d.Walk.Step]
	}
	switch d.By {
	case access.ByOwner:
		line.By = "owner " + d.Grantee
	case access.ByGrant:
		line.By = "grant to " + d.Grantee
	case access.ByInside:
		line.By = "something inside it"
	}
	return line
}

// namesOf returns the names of views in the form of audit lines.
func namesOf(views []moorage.Identifier) (names []string) {
	for _, view := range views {
		names = append(names, view.String())
	}
	return names
}

// outcomeOfChange returns the outcome of a change that was allowed.
func outcomeOfChange(outcome error) string {
	switch {
	case outcome == nil:
		return "done"
	case moorage.KindOf(outcome) == moorage.KindCommitUnknown:
		return "unknown"
	}
	return "failed"
}

// addEffects adds the effects of a change to the lines of its request: to the line about the same
// object, or else to the first line. A created object has no line of its own.
func addEffects(lines []audit.Line, done gate.Done) {
	if len(lines) == 0 || done.Commit == "" {
		return
	}
	for i := range lines {
		lines[i].Commit = done.Commit
	}
	for _, each := range done.Effects {
		effect := audit.Effect{
			Object: audit.Object{
				Kind: each.Kind, Warehouse: each.Ident.Warehouse, Namespace: each.Ident.Namespace,
				Name: each.Ident.Name, ID: each.ID,
			},
			Snapshot: each.Snapshot,
		}
		if each.Previous != nil {
			effect.Was = each.Previous.String()
		}
		at := max(0, slices.IndexFunc(lines, func(line audit.Line) bool { return isAbout(line.Object, effect) }))
		lines[at].Effects = append(lines[at].Effects, effect)
	}
}

// isAbout reports whether a line's object is the object of an effect.
func isAbout(object audit.Object, effect audit.Effect) bool {
	if object.ID != "" {
		return object.ID == effect.ID
	}
	return object.Name == effect.Name && object.Warehouse == effect.Warehouse &&
		slices.Equal(object.Namespace, effect.Namespace)
}
