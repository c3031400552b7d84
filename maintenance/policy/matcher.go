package policy

import (
	"encoding/json"
	"maps"
	"strings"

	"moorage"
	"moorage/catalog"
	"moorage/registry"
)

// Matcher finds the policies that apply to a table. It is immutable, and safe for concurrent use.
type Matcher struct {
	server     []Policy // at most one
	warehouses map[string]Policy
	namespaces map[string]Policy // by pathOf
	tables     map[registry.ID]Policy
	ids        map[string]registry.ID     // of warehouses, by name
	anchors    map[string]registry.Record // by scope
	hash       string
	asks       bool
	number     int64 // of the Reload that made the matcher
}

// newMatcher returns the matcher of all policies, in the order of their scopes.
func newMatcher(all []stored) *Matcher {
	m := &Matcher{
		warehouses: make(map[string]Policy), namespaces: make(map[string]Policy),
		tables: make(map[registry.ID]Policy), ids: make(map[string]registry.ID),
	}
	hashed := make([]Policy, 0, len(all))
	for _, each := range all {
		made := policyOf(each.scope, each.value)
		kind, text, _ := strings.Cut(each.scope, "/")
		var id registry.ID
		if each.scope != registry.ScopeServer && id.UnmarshalText([]byte(text)) != nil {
			continue
		}
		switch kind {
		case registry.ScopeServer:
			m.server = []Policy{made}
		case "w":
			m.warehouses[each.value.Ident.Warehouse], m.ids[each.value.Ident.Warehouse] = made, id
		case "n":
			m.namespaces[pathOf(each.value.Ident.Warehouse, each.value.Ident.Namespace)] = made
		case "t":
			m.tables[id] = made
		}
		for _, job := range made.Jobs {
			m.asks = m.asks || job.Status == Enabled
		}
		if len(made.Jobs) > 0 {
			made.Source.Name = each.scope
			hashed = append(hashed, made)
		}
	}
	m.hash = HashOf(hashed)
	return m
}

// Asks reports whether any policy enables maintenance.
func (m *Matcher) Asks() bool { return m != nil && m.asks }

// Hash returns a hash of all policies.
func (m *Matcher) Hash() string { return m.hash }

// WarehouseID returns the id of a warehouse that has or had a policy. For other warehouses it
// returns zero.
func (m *Matcher) WarehouseID(name string) registry.ID { return m.ids[name] }

// requires returns conditions that fail if a policy that applies to a warehouse has changed since m
// was made. If a record that the conditions need is missing, ok is false; see Policies.anchor.
func (m *Matcher) requires(warehouse registry.ID) (conditions []registry.Condition, ok bool) {
	for _, scope := range []string{registry.ScopeServer, registry.WarehouseScope(warehouse)} {
		record, found := m.anchors[scope]
		if !found {
			return nil, false
		}
		conditions = append(conditions, registry.ETagIs(record.Key, record.ETag))
	}
	return conditions, true
}

// With returns a copy of m in which job is the policy of scope for type t.
func (m *Matcher) With(scope catalog.Scope, t Type, job Job) *Matcher {
	say := func(said Policy) Policy {
		jobs := map[Type]Job{t: job}
		for other, each := range said.Jobs {
			if other != t {
				jobs[other] = each
			}
		}
		return Policy{Source: sourceOf(scope.Name, scope.Ident), Jobs: jobs}
	}
	made, ident := *m, scope.Ident
	switch {
	case !scope.Pointer.IsZero():
		made.tables = maps.Clone(m.tables)
		made.tables[scope.Pointer] = say(m.tables[scope.Pointer])
	case len(ident.Namespace) > 0:
		made.namespaces = maps.Clone(m.namespaces)
		path := pathOf(ident.Warehouse, ident.Namespace)
		made.namespaces[path] = say(m.namespaces[path])
	case ident.Warehouse != "":
		made.warehouses = maps.Clone(m.warehouses)
		made.warehouses[ident.Warehouse] = say(m.warehouses[ident.Warehouse])
	default:
		var server Policy
		if len(m.server) > 0 {
			server = m.server[0]
		}
		made.server = []Policy{say(server)}
	}
	return &made
}

// Chain returns the policies that apply to a table, nearest first. It omits policies without jobs.
func (m *Matcher) Chain(pointer registry.ID, ident moorage.Identifier) []Policy {
	var chain []Policy
	add := func(p Policy) {
		if len(p.Jobs) > 0 {
			chain = append(chain, p)
		}
	}
	add(m.tables[pointer])
	if len(m.namespaces) > 0 {
		for depth := len(ident.Namespace); depth > 0; depth-- {
			add(m.namespaces[pathOf(ident.Warehouse, ident.Namespace[:depth])])
		}
	}
	add(m.warehouses[ident.Warehouse])
	for _, server := range m.server {
		add(server)
	}
	return chain
}

// IsAsked reports whether a chain enables a job.
func IsAsked(chain []Policy) bool {
	for _, p := range chain {
		for _, job := range p.Jobs {
			if job.Status == Enabled {
				return true
			}
		}
	}
	return false
}

// pathOf returns a key for a namespace. It joins the levels with zero bytes, which no level
// contains.
func pathOf(warehouse string, ns moorage.Namespace) string {
	return warehouse + "\x00" + strings.Join(ns, "\x00")
}

// policyOf returns the policy in a record.
func policyOf(scope string, value registry.MaintenancePolicy) Policy {
	made := Policy{Source: sourceOf(scope, value.Ident), Jobs: make(map[Type]Job, len(value.Jobs))}
	for _, job := range value.Jobs {
		t, settings := Type(job.Type), settingsOf(job.Settings)
		made.Jobs[t] = Job{
			Status: Status(job.Status), Settings: settings, Since: job.Since,
			Unsafe: job.Unsafe,
		}
	}
	return made
}

// sourceOf returns the Source of values that a scope sets.
func sourceOf(scope string, ident moorage.Identifier) Source {
	switch {
	case scope == registry.ScopeServer:
		return Source{Level: LevelServer, Name: registry.ScopeServer}
	case strings.HasPrefix(scope, "t/"):
		return Source{Level: LevelTable, Name: ident.String()}
	case len(ident.Namespace) > 0:
		return Source{
			Level: LevelNamespace, Name: ident.Warehouse + "." + strings.Join(ident.Namespace, "."),
		}
	}
	return Source{Level: LevelWarehouse, Name: ident.Warehouse}
}

// settingsOf reads the settings of a record. It skips members that are not strings; only a later
// version of the server writes such members.
func settingsOf(raw json.RawMessage) Settings {
	var members map[string]any
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	settings := make(Settings, len(members))
	for name, member := range members {
		if text, ok := member.(string); ok {
			settings[name] = text
		}
	}
	return settings
}
