package management

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"moorage"
	"moorage/internal/web"
	"moorage/maintenance/due"
	"moorage/maintenance/jobs"
	"moorage/maintenance/purge"
	"moorage/management/client"
	"moorage/recovery"
	"moorage/registry"
)

// Recovery has the methods of *recovery.Recovery.
type Recovery interface {
	Unfinished(ctx context.Context, after string, limit int) ([]recovery.Unfinished, string, error)
	Retry(ctx context.Context, id string) (recovery.Retried, error)
	Abort(ctx context.Context, id string) (recovery.Aborted, error)
}

// Purges has the methods of *purge.Worker.
type Purges interface {
	Blocked(ctx context.Context, after string, limit int) ([]purge.Blocked, string, error)
	ListWaiting(ctx context.Context, after string, limit int) ([]purge.Waiting, string, error)
}

// diagnose answers with a page of findings about the store and this node.
func (s *server) diagnose(w http.ResponseWriter, r *http.Request) error {
	deep, err := web.QueryOf(r).Boolean("deep")
	if err != nil {
		return err
	}
	sources := []findingSource{
		s.findNotices, s.findTransactions, s.findBlockedPurges, s.findWaitingPurges, s.findBlockedMaintenance,
	}
	if deep {
		sources = append(sources, s.findProblems)
	}
	return list(s, "findings "+strconv.FormatBool(deep), pageSizes,
		func(ctx context.Context, page moorage.Page) ([]client.Finding, string, error) {
			return findingsOf(ctx, sources, page)
		},
		func(found []client.Finding, next *string) any {
			return client.FindingsPage{Findings: found, NextPage: client.NextPage{NextPageToken: next}}
		})(w, r)
}

// findingSource returns a page of findings. It may return more than limit findings. To get the next
// page, pass next as after. next is empty on the last page.
type findingSource func(ctx context.Context, after string, limit int) (found []client.Finding, next string, err error)

// findingsOf returns a page of the findings of all sources, one source after another. A page token
// has the index of a source and the token of a page of that source.
func findingsOf(ctx context.Context, sources []findingSource, page moorage.Page) ([]client.Finding, string, error) {
	at, after := 0, ""
	if page.After != "" {
		index, rest, _ := strings.Cut(page.After, ":")
		number, err := strconv.Atoi(index)
		if err != nil || number < 0 || number >= len(sources) {
			return nil, "", moorage.Errorf(moorage.KindBadRequest, "Invalid page token")
		}
		at, after = number, rest
	}
	all := []client.Finding{}
	for at < len(sources) {
		if len(all) >= page.Limit {
			return all, fmt.Sprintf("%d:%s", at, after), nil
		}
		found, next, err := sources[at](ctx, after, page.Limit-len(all))
		if err != nil {
			return nil, "", err
		}
		if all, after = append(all, found...), next; next == "" {
			at++
		}
	}
	return all, "", nil
}

// findNotices returns the findings that the node reports about itself.
func (s *server) findNotices(ctx context.Context, after string, limit int) ([]client.Finding, string, error) {
	all, at := s.config.Findings(ctx), 0
	if after != "" {
		var err error
		if at, err = strconv.Atoi(after); err != nil || at < 0 {
			return nil, "", moorage.Errorf(moorage.KindBadRequest, "Invalid page token")
		}
	}
	rest := all[min(at, len(all)):]
	if len(rest) <= limit {
		return rest, "", nil
	}
	return rest[:limit], strconv.Itoa(at + limit), nil
}

func (s *server) findTransactions(ctx context.Context, after string, limit int) ([]client.Finding, string, error) {
	found, next, err := s.config.Recovery.Unfinished(ctx, after, limit)
	return each(found, transactionFinding), next, err
}

func (s *server) findBlockedPurges(ctx context.Context, after string, limit int) ([]client.Finding, string, error) {
	found, next, err := s.config.Purges.Blocked(ctx, after, limit)
	return each(found, blockedFinding), next, err
}

func (s *server) findWaitingPurges(ctx context.Context, after string, limit int) ([]client.Finding, string, error) {
	found, next, err := s.config.Purges.ListWaiting(ctx, after, limit)
	return each(found, waitingFinding), next, err
}

// transactionFinding describes a transaction that is not finished.
func transactionFinding(u recovery.Unfinished) client.Finding {
	id := u.ID.String()
	if u.Unreadable != nil {
		return client.Finding{
			ID: id, Level: client.LevelBad, What: "transaction",
			Fact: fmt.Sprintf("%s, and its record cannot be read: %s", u.State, u.Unreadable),
			Remedy: "The servers leave it alone. Stop them and run moorage doctor forget, " +
				"which removes the record and leaves the files",
		}
	}
	finding := client.Finding{
		ID: id, Level: client.LevelOK, What: "transaction in warehouse " + u.Warehouse,
		Files: u.Files, Until: u.Deadline,
	}
	began := fmt.Sprintf("%s, began %s", u.State, u.Began.Format(time.RFC3339))
	if u.Principal != "" {
		began += " by " + u.Principal
	}
	if u.State == registry.StatePending {
		began += ", its coordinator has until " + u.Deadline.Format(time.RFC3339)
	}
	names := make([]string, len(u.Participants))
	for i, participant := range u.Participants {
		names[i] = nameOf(participant.Ident)
	}
	facts := []string{
		began,
		fmt.Sprintf("%s: %s", moorage.Counted(len(names), "table"), strings.Join(names, ", ")),
		fmt.Sprintf("up to %s written, %d published", moorage.Counted(len(u.Files), "file"), len(u.Published)),
	}
	if u.Blocker != nil {
		finding.Level = client.LevelBad
		facts = append(facts, givenUp(u.Blocker.Attempts, u.Blocker.LastError, u.Blocker.Unreadable))
		finding.Remedy = remedyOf(id) + ", or end the transaction: moorage doctor abort " + id
	}
	finding.Fact = strings.Join(facts, "; ")
	return finding
}

// blockedFinding describes a purge that the servers have given up, or whose record cannot be read.
func blockedFinding(p purge.Blocked) client.Finding {
	if p.Unreadable != nil {
		return client.Finding{
			ID: p.ID, Level: client.LevelBad, What: "task, probably a purge",
			Fact: fmt.Sprintf("its record cannot be read: %s", p.Unreadable),
			Remedy: "The servers leave it alone. moorage doctor --deep names its table. Stop the servers and run " +
				"moorage doctor forget, which removes the record and leaves the files",
		}
	}
	return client.Finding{
		ID: p.ID, Level: client.LevelBad, What: "purge of " + purgedName(p.Table),
		Fact: givenUp(p.Attempts, p.LastError, nil), Remedy: remedyOf(p.ID),
	}
}

// waitingFinding describes a purge that waits until its table can no longer come back.
func waitingFinding(p purge.Waiting) client.Finding {
	fact := "begins " + p.Begins.UTC().Format(time.RFC3339)
	if p.Bytes > 0 {
		fact = moorage.SizeOf(uint64(p.Bytes)) + ", " + fact
	}
	return client.Finding{
		ID: p.ID, Level: client.LevelOK, What: "purge of " + purgedName(p.Table), Fact: "waits: " + fact,
		Remedy: "To begin it now: moorage doctor retry " + p.ID,
	}
}

// findBlockedMaintenance returns a finding for each table and kind of job whose maintenance is
// blocked. If a job of that kind is in progress, the finding has the job's id. The finding is bad
// unless an operator quarantined the job.
func (s *server) findBlockedMaintenance(ctx context.Context, after string, limit int) (
	[]client.Finding, string, error) {
	found, next, err := s.blockedMaintenance(ctx, after, limit)
	if err == nil || moorage.KindOf(err) != moorage.KindInternal {
		return found, next, err
	}
	// A damaged record must not hide other findings. It must also not stop a deep examination,
	// which names the record.
	return []client.Finding{{
		Level: client.LevelBad, What: "maintenance", Fact: "what is blocked cannot be read: " + err.Error(),
		Remedy: "moorage doctor --deep names the record",
	}}, "", nil
}

func (s *server) blockedMaintenance(ctx context.Context, after string, limit int) ([]client.Finding, string, error) {
	blockers, next, err := s.config.Steering.Blockers(ctx, after, limit)
	if err != nil {
		return nil, "", err
	}
	found := make([]client.Finding, len(blockers))
	for i, blocker := range blockers {
		under, _, err := s.config.Jobs.List(ctx, blocker.Pointer, "", 0)
		if err != nil {
			return nil, "", err
		}
		job := ""
		for _, each := range under {
			if each.Kind == blocker.Kind && each.State == registry.StateBlocked {
				job = each.ID.String()
			}
		}
		found[i] = blockerFinding(blocker, job)
	}
	return found, next, nil
}

// blockerFinding describes blocked maintenance of a table. job is the id of the blocked job, or
// empty if there is none.
func blockerFinding(blocker due.Blocker, job string) client.Finding {
	table := "a table that is gone"
	if blocker.Table.Name != "" {
		table = objectCalled(blocker.Table).String()
	}
	since := blocker.Since.UTC().Format(time.RFC3339)
	finding := client.Finding{
		ID: job, Level: client.LevelBad, What: blocker.Kind + " of " + table,
		Fact: fmt.Sprintf("blocked since %s: %s", since, blocker.Reason),
	}
	switch {
	case blocker.By != "":
		finding.Level = client.LevelWarn
		finding.Fact = fmt.Sprintf("%s; since %s, until an operator retries or cancels the job", blocker.Reason, since)
		if job != "" {
			finding.Remedy = fmt.Sprintf("Look at it, then: moorage maintain job retry %s, or end the job: "+
				"moorage maintain job cancel %s", job, job)
		}
	case job != "":
		finding.Remedy = remedyOf(job) + ", or end the job: moorage doctor abort " + job
	case blocker.Table.Name != "":
		_, name, _ := strings.Cut(table, " ")
		finding.Remedy = fmt.Sprintf("Repair the cause, then: moorage maintain run %s %s --by-policy", blocker.Kind,
			moorage.ShellWord(name))
	}
	return finding
}

// findProblems reads every record and every metadata file of the store, and returns the problems as
// findings.
func (s *server) findProblems(ctx context.Context, _ string, _ int) ([]client.Finding, string, error) {
	report, err := s.config.Check(ctx)
	if err != nil {
		return nil, "", err
	}
	var found []client.Finding
	for _, problem := range report.Problems {
		found = append(found, client.Finding{Level: client.LevelBad, What: "problem", Fact: problem})
	}
	for _, unread := range report.Unread {
		found = append(found, client.Finding{
			Level: client.LevelBad, What: "not checked", Fact: unread, Remedy: "Repair the storage, and check again",
		})
	}
	problems := "no problems"
	if n := len(report.Problems); n > 0 {
		problems = moorage.Counted(n, "problem")
	}
	return append(found, client.Finding{Level: client.LevelOK, What: "store", Fact: fmt.Sprintf("%s, %s, %s, %s: %s",
		moorage.Counted(report.Warehouses, "warehouse"), moorage.Counted(report.Namespaces, "namespace"),
		moorage.Counted(report.Tables, "table"), moorage.Counted(report.Views, "view"), problems,
	)}), "", nil
}

// givenUp describes why the servers gave something up. attempts is the number of failures, and last
// is the text of the last one. If the record with this reason cannot be read, unreadable is the
// error.
func givenUp(attempts int, last string, unreadable error) string {
	if unreadable != nil {
		return fmt.Sprintf("given up; the record with the reason cannot be read: %s", unreadable)
	}
	return fmt.Sprintf("given up after %s, last: %s", moorage.Counted(attempts, "attempt"), moorage.OneLine(last))
}

func remedyOf(id string) string { return "Repair the cause, then: moorage doctor retry " + id }

// purgedName returns the name of a dropped table with its warehouse.
func purgedName(table moorage.Identifier) string {
	if table.Name == "" {
		return "a table whose record cannot be read"
	}
	return nameOf(table) + " in warehouse " + table.Warehouse
}

// nameOf returns the name of a table in its warehouse.
func nameOf(ident moorage.Identifier) string {
	return strings.Join(append(append([]string{}, ident.Namespace...), ident.Name), ".")
}

// retryUnfinished retries the transaction, the purge or the job in the path of a request.
func (s *server) retryUnfinished(r *http.Request, _ []byte) (any, error) {
	id, err := web.PathParam(r, "id")
	if err != nil {
		return nil, err
	}
	retried, err := s.config.Recovery.Retry(r.Context(), id)
	if moorage.KindOf(err) != moorage.KindNotFound {
		return client.Retried{Kind: string(retried.Kind), Ended: retried.Ended, Reason: textOf(retried.Reason)}, err
	}
	job, found, errJob := s.findJob(r.Context(), id)
	switch {
	case errJob != nil:
		return nil, errJob
	case !found:
		return nil, err
	}
	return client.Retried{Kind: client.KindJob}, s.config.Jobs.Retry(r.Context(), job.ID, jobs.Retrying{})
}

// abortUnfinished ends the transaction or the job in the path of a request.
func (s *server) abortUnfinished(r *http.Request, _ []byte) (any, error) {
	id, err := web.PathParam(r, "id")
	if err != nil {
		return nil, err
	}
	aborted, err := s.config.Recovery.Abort(r.Context(), id)
	if moorage.KindOf(err) != moorage.KindNotFound {
		return client.Aborted{
			Kind: client.KindTransaction, Was: aborted.Was.String(), Forgotten: aborted.Forgotten,
			Left: append([]string{}, aborted.Left...),
		}, err
	}
	job, found, errJob := s.findJob(r.Context(), id)
	switch {
	case errJob != nil:
		return nil, errJob
	case !found:
		return nil, err
	}
	return client.Aborted{
		Kind: client.KindJob, Was: strings.ToLower(job.State.String()), Forgotten: true, Left: []string{},
	}, s.config.Jobs.Cancel(r.Context(), job.ID, web.CallerOf(r).Name)
}

// findJob returns the job in progress with an id.
func (s *server) findJob(ctx context.Context, id string) (job jobs.Under, found bool, err error) {
	all, _, err := s.config.Jobs.List(ctx, registry.ID{}, "", 0)
	for _, each := range all {
		if each.ID.String() == id {
			return each, true, nil
		}
	}
	return job, false, err
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
