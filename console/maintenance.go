package console

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage/management/client"
)

// maintenancePage is the maintenance of a table: what is due and why, and what was done.
type maintenancePage struct {
	tableHead
	status client.MaintenanceStatus
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
	return head.page(placeMaintain, model.node()), nil
}

// node returns the page.
func (m maintenancePage) node() g.Node {
	return g.Group{m.pauses(), m.kinds(), m.jobs(), m.runs()}
}

// pauses returns why maintenance stands still, and how to go on.
func (m maintenancePage) pauses() g.Node {
	pause := link(to(placeRun, m.object, "change", "pause"), h.Class("button"), g.Text("Pause …"))
	if len(m.status.Pauses) == 0 {
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
	list := grid{label: "Kinds of maintenance", plain: true, columns: []column{
		{"Kind", ""}, {"State", ""}, {"Why", "wide"}, {"Due", ""}, {"Last look", ""}, {"", "next"},
	}}
	for _, k := range m.status.Kinds {
		due, last := k.Due, k.Last
		why := g.Group{text(k.Why)}
		if k.From != "" {
			why = append(why, h.Div(h.Class("faint"), g.Text("decided by "), text(k.From)))
		}
		if k.Outcome != "" {
			why = append(why, h.Div(h.Class("faint"), g.Text("the last look ended with: "), text(k.Outcome)))
		}
		why = append(why, settings(k.Settings))
		list.rows = append(list.rows, []cell{
			plain(h.Strong(text(k.Kind))), plain(badge(stateLook(k.State), strings.ReplaceAll(k.State, "_", " "))),
			plain(why),
			timed(m.now, &due), timed(m.now, &last),
			plain(link(to(placeRun, m.object, "change", "run", "kind", k.Kind), g.Text("look now …"))),
		})
	}
	if len(list.rows) == 0 {
		words := append([]string{"moorage", "maintain", "set"}, objectWords(m.object)...)
		return empty("This server does no maintenance for this table.", command(append(words, "snapshots", "on")...))
	}
	return panel("What is due", list.node())
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
	}}
	for _, j := range m.status.Jobs {
		list.rows = append(list.rows, []cell{
			plain(text(j.Kind)), plain(text(j.State)), timed(m.now, &j.Created), plain(caller(j.Principal)),
			numeric(number(&j.Deleted), &j.Deleted), numeric(number(&j.Files), &j.Files),
			plain(g.Group{text(j.LastError), g.If(j.Paused != "", h.Span(text("paused by "+j.Paused)))}),
		})
	}
	return panel("In progress", list.node())
}

// runs returns the jobs that have ended.
func (m maintenancePage) runs() g.Node {
	if len(m.status.Runs) == 0 {
		return panel("Done before", empty("No job on this table has ended yet.", shellLine{}))
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
	return panel("Done before", list.node())
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
	switch change {
	case "run":
		body["kind"] = kind
		made.title, made.button = "Look now", "Look now"
		made.says = []g.Node{g.Group{g.Text("The server looks at once whether "), h.Strong(text(kind)),
			g.Text(" has something to do, by the policies in force, and begins the job if so.")}}
		made.command = command("moorage", "maintain", "run", kind, words[len(words)-1], "--by-policy")
	case "pause":
		body["reason"] = "paused in the console"
		made.title, made.button = "Pause maintenance", "Pause"
		made.says = []g.Node{g.Text("No new job begins on this table until maintenance is resumed. " +
			"Jobs in progress stop before their next step.")}
		made.command = command(append([]string{"moorage", "maintain", "pause"}, words...)...)
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
