package console

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage/management/client"
)

// operationsPage is what the servers do beside requests, and what needs an operator.
type operationsPage struct {
	now      time.Time
	findings client.FindingsPage
	jobs     client.MaintenanceJobsPage
	leases   client.LeasesPage
	isDeep   bool
}

// loadOperations loads what an operator needs.
func loadOperations(ctx context.Context, v *visit) (*page, error) {
	model := operationsPage{now: v.now, isDeep: v.query.Has("deep")}
	query := url.Values{}
	if model.isDeep {
		query.Set("deep", "true")
	}
	if err := v.get(ctx, "/doctor", query, &model.findings); err != nil {
		return nil, err
	}
	if err := v.get(ctx, "/maintenance/jobs", nil, &model.jobs); optional(err) != nil {
		return nil, err
	}
	if err := v.get(ctx, "/leases", nil, &model.leases); optional(err) != nil {
		return nil, err
	}
	return &page{title: "Operations", section: placeOperations, body: model.node()}, nil
}

// node returns the page.
func (m operationsPage) node() g.Node {
	check := link(to(placeOperations, client.Object{}, "deep", "yes"), h.Class("button"),
		g.Text("Check every record and file"))
	if m.isDeep {
		check = link(to(placeOperations, client.Object{}), h.Class("button"),
			g.Text("Without the check of all records"))
	}
	return g.Group{
		h.Div(h.Class("title"), h.H1(g.Text("Operations"))),
		h.Div(h.Class("tools"), check, h.Span(h.Class("faint"), g.Text("It only reads, and can take minutes."))),
		h.Div(h.ID("live"), g.If(!m.isDeep, h.Data("poll", "10")), h.Aria("live", "polite"),
			panel("Findings", m.list()), m.work(), m.held()),
		panel("Backup", h.P(h.Class("faint"), g.Text("A backup is made on the server's own machine: ")),
			command("moorage", "backup", "FOLDER").node()),
	}
}

// list returns the findings, with what a visitor can do about each.
func (m operationsPage) list() g.Node {
	if len(m.findings.Findings) == 0 {
		return empty("There is nothing to do: no transaction, purge or job waits for an operator.",
			command("moorage", "doctor", "--deep"))
	}
	return findingList(m.findings.Findings, func(f client.Finding) g.Node {
		if f.ID == "" {
			return nil
		}
		return h.Div(link(to(placeUnfinished, client.Object{}, "id", f.ID, "change", "retry"), g.Text("retry …")),
			g.Text("  "),
			link(to(placeUnfinished, client.Object{}, "id", f.ID, "change", "abort"), g.Text("abort …")))
	})
}

// work returns the maintenance jobs of the server.
func (m operationsPage) work() g.Node {
	list := grid{label: "Maintenance jobs", columns: []column{
		{"Table", ""}, {"Kind", ""}, {"State", ""}, {"Begun", ""}, {"Deleted", "num"}, {"Files", "num"},
		{"Error", "wide"},
	}}
	for _, j := range m.jobs.Jobs {
		table := dash()
		if j.Object != nil {
			table = link(to(placeMaintain, *j.Object),
				name(strings.Join(append(append([]string{}, j.Object.Namespace...), j.Object.Table), ".")))
		}
		list.rows = append(list.rows, []cell{
			plain(table), plain(text(j.Kind)), plain(text(j.State)), timed(m.now, &j.Created),
			numeric(number(&j.Deleted), &j.Deleted),
			numeric(number(&j.Files), &j.Files), plain(text(j.LastError)),
		})
	}
	return panel("Maintenance in progress", filled(list, "No maintenance job is in progress.", shellLine{}))
}

// held returns the leases that programs hold.
func (m operationsPage) held() g.Node {
	list := grid{label: "Leases",
		columns: []column{{"Holder", ""}, {"Caller", ""}, {"Scope", "wide"}, {"Since", ""}, {"Ends", ""}}}
	for _, l := range m.leases.Leases {
		list.rows = append(list.rows, []cell{
			plain(name(l.Holder)), plain(caller(l.Principal)), plain(text(l.Scope)), timed(m.now, &l.Since),
			timed(m.now, &l.Expires),
		})
	}
	return panel("Leases: programs that keep maintenance from a table",
		filled(list, "No program holds a lease on a table.", shellLine{}))
}

// loadUnfinished prepares the retry or the abort of unfinished work. The page shows what the API
// knows of the work: an address can have any words in it.
func loadUnfinished(ctx context.Context, v *visit) (*page, error) {
	change := v.text("change")
	f, err := loadFinding(ctx, v, v.text("id"))
	if err != nil {
		return nil, err
	}
	made := prepared{
		key: newKey(), back: to(placeOperations, client.Object{}), body: []byte("{}"),
		path:    client.RootManagement + client.Path("doctor", f.ID, change),
		command: command("moorage", "doctor", change, f.ID),
		says:    []g.Node{g.Group{h.Strong(text(f.What)), g.Text(": "), text(f.Fact)}},
	}
	switch change {
	case "retry":
		made.title, made.button = "Try again", "Try again"
		made.says = append(made.says, g.Text("The server tries once more, now."))
	case "abort":
		made.title, made.button = "Abort", "Abort"
		made.says = append(made.says, g.Text("It ends without its result. Files that it wrote may stay."))
	default:
		return nil, &client.Error{Code: http.StatusBadRequest, Message: "There is no such change."}
	}
	return &page{title: made.title, section: placeOperations, body: made.node()}, nil
}

// findingPagesMax bounds the pages in which loadFinding looks.
const findingPagesMax = 100

// loadFinding loads the finding about the unfinished work with an id.
func loadFinding(ctx context.Context, v *visit, id string) (client.Finding, error) {
	query := url.Values{"pageSize": {strconv.Itoa(client.PageMax)}}
	for range findingPagesMax {
		var listed client.FindingsPage
		if err := v.get(ctx, "/doctor", query, &listed); err != nil {
			return client.Finding{}, err
		}
		for _, f := range listed.Findings {
			if id != "" && f.ID == id {
				return f, nil
			}
		}
		if listed.Next() == "" {
			break
		}
		query.Set("pageToken", listed.Next())
	}
	return client.Finding{}, &client.Error{
		Code: http.StatusNotFound, Message: "There is no unfinished work with this id that you may see.",
		Help: "It may have ended meanwhile. Look at the list of findings.",
	}
}
