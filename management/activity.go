package management

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog/activity"
	"moorage/internal/web"
	"moorage/management/client"
)

// Limits for the lists of refusals and denials that nodes remember.
const (
	rememberedDefault = 100
	rememberedMax     = 1000
	// busyTables is the number of tables that loadTop shows.
	busyTables = 20
)

// PeerAnswer is the answer of another node to a request that this node received. If there is no
// answer, Err explains why.
type PeerAnswer struct {
	Node string
	Body []byte
	Err  error
}

// activityOperations returns the operations that show what nodes remember.
func (s *server) activityOperations() []operation {
	return []operation{
		{"loadTop", http.MethodGet, "/top", s.loadTop},
		{"loadCluster", http.MethodGet, "/cluster", s.loadCluster},
		{"listRefusals", http.MethodGet, "/refusals", s.listRefusals},
		{"listDenials", http.MethodGet, "/denials", s.listDenials},
	}
}

// loadTop answers with the present activity of this node.
func (s *server) loadTop(w http.ResponseWriter, r *http.Request) error {
	top := s.config.Activity.Top(s.config.Now(), busyTables)
	answer := client.Top{
		Node: s.config.Node, Since: top.Since.UTC(), Nodes: s.config.Nodes(), Commits: top.Commits,
		Conflicts: top.Conflicts, Loads: top.Loads, CommitP99: milliseconds(top.CommitP99),
		LoadP99: milliseconds(top.LoadP99), Tables: each(top.Tables, busyTableOf), Minutes: each(top.Minutes, minuteOf),
	}
	return s.AnswerJSON(w, r, answer)
}

func busyTableOf(t activity.BusyTable) client.BusyTable {
	return client.BusyTable{
		Warehouse: t.Ident.Warehouse, Namespace: append([]string{}, t.Ident.Namespace...), Name: t.Ident.Name,
		Commits: t.Commits, Conflicts: t.Conflicts, Loads: t.Loads, WaitP99: milliseconds(t.WaitP99), LastBy: t.LastBy,
	}
}

func minuteOf(m activity.Minute) client.Minute {
	return client.Minute{
		At: m.At, Commits: m.Commits, Conflicts: m.Conflicts, Loads: m.Loads, CommitP99: milliseconds(m.CommitP99),
		LoadP99: milliseconds(m.LoadP99),
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// listRefusals answers with the commits of an object that this node and the other nodes refused.
func (s *server) listRefusals(w http.ResponseWriter, r *http.Request) error {
	kind, ident, limit, err := refusalsQuery(r)
	if err != nil {
		return err
	}
	found, err := s.browse(r).Refusals(r.Context(), kind, ident, limit)
	if err != nil {
		return err
	}
	answer := client.Refusals{Refusals: each(found, refusalOf)}
	answer.Nodes = s.askNodes(r, func(body []byte) ([]client.NodeAsked, error) {
		var other client.Refusals
		if err := json.Unmarshal(body, &other); err != nil {
			return nil, err
		}
		answer.Refusals = append(answer.Refusals, other.Refusals...)
		return other.Nodes, nil
	})
	slices.SortStableFunc(answer.Refusals, func(a, b client.Refusal) int { return b.Time.Compare(a.Time) })
	answer.Refusals = answer.Refusals[:min(limit, len(answer.Refusals))]
	return s.AnswerJSON(w, r, answer)
}

// refusalsQuery reads the parameters of listRefusals.
func refusalsQuery(r *http.Request) (kind access.Kind, ident moorage.Identifier, limit int, err error) {
	object, err := objectOfQuery(r)
	if err != nil {
		return kind, ident, 0, err
	}
	ident = moorage.Identifier{
		Warehouse: object.Warehouse, Namespace: object.Namespace, Name: cmp.Or(object.Table, object.View),
	}
	switch {
	case object.IsServer(), object.Function != "":
		return kind, ident, 0, moorage.Errorf(moorage.KindBadRequest,
			"Name a warehouse, a namespace, a table or a view")
	case object.Table != "":
		kind = access.Table
	case object.View != "":
		kind = access.View
	case len(object.Namespace) > 0:
		kind = access.Namespace
	default:
		kind = access.Warehouse
	}
	limit, err = limitOf(web.QueryOf(r))
	return kind, ident, limit, err
}

// limitOf reads the parameter limit.
func limitOf(q web.Query) (int, error) {
	text, given, err := q.Text("limit")
	if err != nil || !given {
		return rememberedDefault, err
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > rememberedMax {
		return 0, moorage.Errorf(moorage.KindBadRequest, "Invalid limit: %q, want a number from 1 to %d",
			moorage.Cut(text, moorage.ShownBytesMax), rememberedMax)
	}
	return limit, nil
}

func refusalOf(r activity.Refusal) client.Refusal {
	refusal := client.Refusal{
		Time: r.At.UTC(), Warehouse: r.Of.Ident.Warehouse, Namespace: append([]string{}, r.Of.Ident.Namespace...),
		Name: r.Of.Ident.Name, Caller: moorage.NameOf(r.Caller), Client: r.Client, RequestID: r.RequestID,
		Type: web.FailureOf(r.Kind).Type, Reason: r.Reason, Ref: r.Ref, Expected: r.Expected, Found: r.Found,
		LastAt: r.LastAt,
	}
	if !r.Change.IsZero() {
		refusal.By, refusal.Change = moorage.NameOf(r.By), r.Change.String()
	}
	return refusal
}

// listDenials answers with the last requests that this node and the other nodes denied.
func (s *server) listDenials(w http.ResponseWriter, r *http.Request) error {
	limit, err := limitOf(web.QueryOf(r))
	if err != nil {
		return err
	}
	answer := client.NodeDenials{Denials: each(s.config.LastDenials(limit), denialOf)}
	answer.Nodes = s.askNodes(r, func(body []byte) ([]client.NodeAsked, error) {
		var other client.NodeDenials
		if err := json.Unmarshal(body, &other); err != nil {
			return nil, err
		}
		answer.Denials = append(answer.Denials, other.Denials...)
		return other.Nodes, nil
	})
	slices.SortStableFunc(answer.Denials, func(a, b client.Denial) int { return b.Time.Compare(a.Time) })
	answer.Denials = answer.Denials[:min(limit, len(answer.Denials))]
	return s.AnswerJSON(w, r, answer)
}

// loadCluster answers with the states of this node and of the other nodes.
func (s *server) loadCluster(w http.ResponseWriter, r *http.Request) error {
	own, others := s.config.State(), []client.NodeState{}
	asked := s.askNodes(r, func(body []byte) ([]client.NodeAsked, error) {
		var other client.Cluster
		if err := json.Unmarshal(body, &other); err != nil {
			return nil, err
		}
		others = append(others, other.Nodes...)
		return nil, nil
	})
	own.NodeAsked = asked[0]
	for _, failed := range asked[1:] {
		others = append(others, client.NodeState{NodeAsked: failed})
	}
	return s.AnswerJSON(w, r, client.Cluster{Nodes: append([]client.NodeState{own}, others...)})
}

// askNodes sends the request to the other nodes too, unless it came from another node, and calls
// add with each answer. add returns the nodes in that answer. askNodes returns all nodes, this one
// first.
func (s *server) askNodes(r *http.Request, add func(body []byte) ([]client.NodeAsked, error)) []client.NodeAsked {
	nodes := []client.NodeAsked{{Name: s.config.Node, Since: s.config.Activity.Since().UTC()}}
	if _, isPeer := moorage.ArrivalOf(r.Context()); isPeer {
		return nodes
	}
	for _, answer := range s.config.AskPeers(r, web.CallerOf(r)) {
		asked, err := []client.NodeAsked(nil), answer.Err
		if err == nil {
			asked, err = add(answer.Body)
		}
		if err != nil {
			asked = []client.NodeAsked{{Name: answer.Node, Failed: moorage.OneLine(err.Error())}}
		}
		nodes = append(nodes, asked...)
	}
	return nodes
}
