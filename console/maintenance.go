package console

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage/management/client"
)

// maintenancePage is the maintenance of a table: what is due and why, and what was done.
type maintenancePage struct {
	tableHead
	status  client.MaintenanceStatus
	leases  []client.Lease
	preview *preview // what the visitor asked to see; nil for nothing
}

// loadMaintenance loads the maintenance of a table.
func loadMaintenance(ctx context.Context, v *visit) (*page, error) {
	head, err := loadTableHead(ctx, v)
	if err != nil {
		return nil, err
	}
	model := maintenancePage{tableHead: head}
	if err := v.get(ctx, "/maintenance/status", head.object.Query(), &model.status); err != nil {
		return nil, err
	}
	if model.leases, err = loadLeases(ctx, v, head); err != nil {
		return nil, err
	}
	if model.preview, err = loadPreview(ctx, v, model.status); err != nil {
		return nil, err
	}
	return head.page(placeMaintain, model.node()), nil
}

// loadLeases loads the leases on the table; none if the visitor may not see them.
func loadLeases(ctx context.Context, v *visit, head tableHead) ([]client.Lease, error) {
	var held client.LeasesPage
	err := v.get(ctx, "/leases", url.Values{"table-id": {head.details.ID}}, &held)
	return held.Leases, optional(err)
}

// node returns the page.
func (m maintenancePage) node() g.Node {
	return g.Group{m.pauses(), m.preview.node(), m.kinds(), m.jobs(), m.held(), m.runs()}
}

// held returns the leases on the table. Jobs of the server wait for them.
func (m maintenancePage) held() g.Node {
	if len(m.leases) == 0 {
		return nil
	}
	list := grid{label: "Leases on the table", columns: []column{
		{"Holder", ""}, {"Caller", ""}, {"Scope", "wide"}, {"Since", ""}, {"Ends", ""},
	}}
	for _, l := range m.leases {
		list.rows = append(list.rows, []cell{
			plain(name(l.Holder)), plain(caller(l.Principal)), plain(text(l.Scope)), timed(m.now, &l.Since),
			timed(m.now, &l.Expires),
		})
	}
	return panel("Leases held", list.node())
}

// pauses returns why maintenance stands still, and how to go on.
func (m maintenancePage) pauses() g.Node {
	pause := ask(to(placeRun, m.object, "change", "pause"),
		h.Label(g.Text("Reason "), h.Input(h.Name("reason"), h.Placeholder("quarter end"))),
		h.Button(g.Text("Pause …")))
	isOn := func(k client.MaintenanceKind) bool { return k.State != "Disabled" }
	switch {
	case len(m.status.Pauses) == 0 && len(m.status.Jobs) == 0 && !slices.ContainsFunc(m.status.Kinds, isOn):
		return nil // there is nothing to pause
	case len(m.status.Pauses) == 0:
		return h.Div(h.Class("tools"), pause)
	}
	isOwn := false
	list := g.Map(m.status.Pauses, func(p client.MaintenancePause) g.Node {
		isOwn = isOwn || p.Object.Table != ""
		return h.P(h.Class("warning"), g.Text("Paused for "), text(p.Object.String()), g.Text(": "), text(p.Reason),
			by(p.By),
			g.Text(", "), ago(m.now, p.Since))
	})
	return g.Group{list, h.Div(h.Class("tools"),
		g.Iff(isOwn, func() g.Node {
			return link(to(placeRun, m.object, "change", "resume"), h.Class("button"), g.Text("Resume …"))
		}), g.If(!isOwn, pause))}
}

// kindWords returns what kinds of jobs do.
func kindWords() map[string]string {
	return map[string]string{
		"snapshots": "Expires old snapshots.", "orphans": "Deletes files that no version has.",
		kindCompaction: "Joins small files.",
	}
}

// stateLook returns the look of a state.
func stateLook(state string) string {
	switch state {
	case "Failed", "Blocked":
		return "bad"
	case "Held", "Paused":
		return "warn"
	case "Successful", "Running":
		return "good"
	}
	return ""
}

// kinds returns the state of each kind of job, with the settings in force.
func (m maintenancePage) kinds() g.Node {
	list := grid{label: "Kinds of maintenance", plain: true, stacks: true, columns: []column{
		{"Kind", ""}, {"State", ""}, {"Why", "wide"}, {"Due", ""}, {"Last check", ""}, {"", "next"},
	}}
	for _, k := range m.status.Kinds {
		due, last := k.Due, k.Last
		why := g.Group{h.Div(h.Class("faint"), g.Text(kindWords()[k.Kind])), m.why(k)}
		if k.Outcome != "" {
			why = append(why, h.Div(h.Class("faint"), g.Text("the last check ended with: "), text(k.Outcome)))
		}
		why = append(why, stateAdvice()[k.State].node(), settings(k.Settings))
		list.rows = append(list.rows, []cell{
			plain(h.Strong(text(k.Kind))), plain(badge(stateLook(k.State), strings.ReplaceAll(k.State, "_", " "))),
			plain(why),
			timed(m.now, &due), timed(m.now, &last),
			plain(h.Span(h.Class("actions"),
				link(to(placeMaintain, m.object, "preview", k.Kind), g.Text("preview")),
				link(to(placeRun, m.object, "change", "run", "kind", k.Kind),
					g.Text(map[bool]string{true: "retry …", false: "check now …"}[k.State == "Blocked"])))),
		})
	}
	if len(list.rows) == 0 {
		words := append([]string{"moorage", "maintain", "set"}, objectWords(m.object)...)
		return empty("This server does no maintenance for this table.", command(append(words, "snapshots", "on")...))
	}
	return panel("Maintenance", list.node())
}

// why returns why a kind of job is due or not, and what turns it on if it is off.
func (m maintenancePage) why(k client.MaintenanceKind) g.Group {
	if k.State == "Disabled" {
		words := append([]string{"moorage", "maintain", "set"}, objectWords(m.object)...)
		because := g.Node(g.Group{g.Text("Turned off by "), text(k.From), g.Text(". ")})
		if k.From == "default" || k.From == "" {
			because = g.Text("No policy turns it on. ")
		}
		return g.Group{because, h.Div(copied(command(append(words, k.Kind, "on")...).text))}
	}
	why := g.Group{g.If(k.Why != "", h.Div(text(k.Why)))}
	if k.From != "" {
		why = append(why, h.Div(h.Class("faint"), g.Text("Turned on by "), text(k.From), g.Text(".")))
	}
	switch {
	case k.State == "Paused":
		why = append(why, h.Div(g.Text("It waits until maintenance is resumed.")))
	case k.Job != "":
		why = append(why, h.Div(g.Text("A job is in progress.")))
	case k.Due.IsZero():
		why = append(why, h.Div(g.Text("Nothing is due: the server looks again after the next commit.")))
	case k.Due.After(m.now):
		why = append(why, h.Div(g.Text("The server looks at the table "), ago(m.now, k.Due), g.Text(".")))
	default:
		why = append(why, h.Div(g.Text("It is due now.")))
	}
	return why
}

// settings returns the settings of a kind of job, and where each comes from.
func settings(all map[string]client.MaintenanceValue) g.Node {
	if len(all) == 0 {
		return nil
	}
	list := grid{label: "Settings", plain: true, columns: []column{{"Setting", ""}, {"Value", ""}, {"From", "wide"}}}
	for _, key := range sortedKeys(all) {
		list.rows = append(list.rows, []cell{plain(mono(key)), plain(text(all[key].Value)), plain(text(all[key].From))})
	}
	return h.Details(h.Summary(g.Text("Settings in force")), list.node())
}

// jobs returns the jobs in progress.
func (m maintenancePage) jobs() g.Node {
	if len(m.status.Jobs) == 0 {
		return nil
	}
	list := grid{label: "Jobs in progress", columns: []column{
		{"Kind", ""}, {"State", ""}, {"Begun", ""}, {"By", ""}, {"Deleted", "num"}, {"Files", "num"}, {"Error", "wide"},
		{"", "next"},
	}}
	for _, j := range m.status.Jobs {
		list.rows = append(list.rows, []cell{
			plain(text(j.Kind)), plain(text(j.State)), timed(m.now, &j.Created), plain(caller(j.Principal)),
			numeric(number(&j.Deleted), &j.Deleted), numeric(number(&j.Files), &j.Files),
			plain(g.Group{text(j.LastError), g.If(j.Paused != "", h.Span(text("paused by "+j.Paused)))}),
			plain(h.Span(h.Class("actions"), g.Map(m.changesOf(j), func(change string) g.Node {
				return link(to(placeRun, m.object, "change", change, "job", j.ID), g.Text(jobWords[change]+" …"))
			}))),
		})
	}
	return panel("In progress", list.node())
}

// The changes of a job in progress, as the API has them.
const (
	jobRetry  = "retry"
	jobCancel = "cancel"
	jobPause  = "pause"
	jobResume = "resume"
)

// jobWords are the words on the links to the changes of a job.
var jobWords = map[string]string{jobRetry: "retry", jobCancel: "cancel", jobPause: "pause", jobResume: "resume"}

// changesOf returns what a visitor can do with a job in progress.
func (m maintenancePage) changesOf(j client.MaintenanceJob) []string {
	switch {
	case j.State == "blocked":
		return []string{jobRetry, jobCancel}
	case j.Paused != "":
		return []string{jobResume, jobCancel}
	}
	return []string{jobPause, jobCancel}
}

// runs returns the jobs that have ended.
func (m maintenancePage) runs() g.Node {
	if len(m.status.Runs) == 0 {
		return panel("Past jobs", empty("No job on this table has ended yet.", shellLine{}))
	}
	list := grid{label: "Ended jobs", columns: []column{
		{"Kind", ""}, {"Ended", ""}, {"Took", "num"}, {"Outcome", "wide"}, {"Snapshots", "num"}, {"Files", "num"},
		{"Size", "num"},
	}}
	for _, r := range m.status.Runs {
		outcome := g.Group{text(r.Outcome)}
		if r.Error != "" {
			outcome = append(outcome, h.Div(h.Class("minus"), text(r.Error)))
		}
		for _, kept := range r.Kept {
			outcome = append(outcome, h.Div(h.Class("faint"), g.Text("kept "),
				g.Text(countedWord(int(kept.Files), "file")), text(": "+kept.Reason)))
		}
		list.rows = append(list.rows, []cell{
			plain(text(r.Kind)), timed(m.now, &r.Ended),
			plain(g.Text(r.Ended.Sub(r.Began).Round(time.Millisecond).String())), plain(outcome),
			numeric(number(&r.Snapshots), &r.Snapshots), numeric(number(&r.Files), &r.Files),
			numeric(size(&r.Bytes), &r.Bytes),
		})
	}
	return panel("Past jobs", list.node())
}

// loadRun prepares a change of the maintenance of a table: a run, a pause or the end of a pause.
func loadRun(ctx context.Context, v *visit) (*page, error) {
	head, err := loadTableHead(ctx, v)
	if err != nil {
		return nil, err
	}
	change, kind := v.text("change"), v.text("kind")
	body := map[string]any{"object": head.object}
	made := prepared{
		key: newKey(), back: to(placeMaintain, head.object), needs: v.lacks(ctx, head.object, "maintain"),
	}
	words := objectWords(head.object)
	if id := v.text("job"); id != "" {
		if err := v.prepareJob(ctx, head.object, &made, change, id); err != nil {
			return nil, err
		}
		return head.page(placeMaintain, made.node()), nil
	}
	switch change {
	case "run":
		body["kind"] = kind
		made.title, made.button = "Check now", "Check now"
		made.says = []g.Node{g.Group{g.Text("The server checks at once whether "), h.Strong(text(kind)),
			g.Text(" has something to do, by the policies in force, and begins the job if so.")}}
		made.command = command("moorage", "maintain", "run", kind, words[len(words)-1], "--by-policy")
	case "pause":
		reason := cmp.Or(v.text("reason"), "paused in the console")
		body["reason"] = reason
		made.title, made.button = "Pause maintenance", "Pause"
		made.says = []g.Node{g.Text("No new job begins on this table until maintenance is resumed. " +
			"Jobs in progress stop before their next step."),
			g.Group{g.Text("The reason, for other operators: "), h.Strong(text(reason)), g.Text(".")},
			g.Text("The page Maintenance of the table has the way to resume.")}
		made.command = command(append(append([]string{"moorage", "maintain", "pause"}, words...), "--reason",
			reason)...)
	case "resume":
		made.title, made.button = "Resume maintenance", "Resume"
		made.says = []g.Node{g.Text("Maintenance of this table goes on.")}
		made.command = command(append([]string{"moorage", "maintain", "resume"}, words...)...)
	default:
		return nil, &client.Error{Code: http.StatusBadRequest, Message: "There is no such change of maintenance."}
	}
	made.path = client.RootManagement + "/maintenance/" + change
	if made.body, err = json.Marshal(body); err != nil {
		return nil, err
	}
	return head.page(placeMaintain, made.node()), nil
}

// prepareJob prepares a change of a job that is in progress on a table. The page shows the job as
// the API knows it: an address can have any words in it.
func (v *visit) prepareJob(ctx context.Context, o client.Object, made *prepared, change, id string) error {
	var status client.MaintenanceStatus
	if err := v.get(ctx, "/maintenance/status", o.Query(), &status); err != nil {
		return err
	}
	at := slices.IndexFunc(status.Jobs, func(j client.MaintenanceJob) bool { return j.ID == id })
	if at < 0 || jobWords[change] == "" {
		return &client.Error{Code: http.StatusNotFound, Message: "There is no such job in progress on this table.",
			Help: "It may have ended meanwhile. Look at the maintenance of the table."}
	}
	job := status.Jobs[at]
	made.title = strings.ToUpper(change[:1]) + change[1:] + " the job"
	made.button = made.title
	made.says = []g.Node{g.Group{g.Text("This is the job "), h.Strong(text(job.Kind)), g.Text(", begun "),
		ago(v.now, job.Created), by(job.Principal), g.Text(": "), number(&job.Deleted), g.Text(" of "),
		number(&job.Files), g.Text(" files are deleted. "), text(job.LastError)}}
	made.says = append(made.says, map[string]g.Node{
		jobRetry:  g.Text("The server tries once more, now."),
		jobCancel: g.Text("It ends. The files that it has not deleted stay."),
		jobPause:  g.Text("It stops before its next batch of files."),
		jobResume: g.Text("It goes on."),
	}[change])
	made.body = []byte("{}")
	if change == jobPause {
		made.body = []byte(`{"reason":"paused in the console"}`)
	}
	made.path = client.RootManagement + client.Path("maintenance", "jobs", id, change)
	made.command = command("moorage", "maintain", "job", change, id)
	return nil
}
