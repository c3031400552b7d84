package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"moorage/ascode"
	"moorage/management/client"
)

// Server is a server whose facts are read and changed.
type Server struct {
	Client *client.Client
	// Secret returns the secret of a storage in an environment variable. It is called only for
	// variables that exist.
	Secret func(variable string) (map[string]string, error)
	// GivesUp means that a step may take the caller's right as an administrator.
	GivesUp bool
}

// Extent is how much of a server is read.
type Extent int

// The extents.
const (
	// Named reads what files describe.
	Named Extent = iota
	// Whole reads all warehouses, namespaces, tables and views. It reads properties only of those
	// tables and views that files describe.
	Whole
	// WithTables reads all of these, with the properties of tables and views.
	WithTables
)

// Reading has what was read of a server.
type Reading struct {
	World  ascode.World
	Caller ascode.Caller
	// IsAccessOn reports whether the server decides about access. Without, it has no grants.
	IsAccessOn bool
}

// requestsAtOnce is how many requests a read has under way.
const requestsAtOnce = 8

// Read reads the facts of the objects in wanted that the server has, or of all objects. With access
// it also reads roles, grants and owners, for which the caller needs admin.
func (s *Server) Read(ctx context.Context, wanted ascode.World, extent Extent, access bool) (Reading, error) {
	r := &reader{Server: s, extent: extent, wanted: wanted, read: Reading{World: ascode.World{{}: {}}}}
	if err := r.who(ctx); err != nil {
		return r.read, err
	}
	objects, err := r.objects(ctx, wanted)
	if err != nil {
		return r.read, err
	}
	if extent != Named {
		if err := r.listPolicies(ctx); err != nil {
			return r.read, err
		}
	}
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(requestsAtOnce)
	for _, o := range objects {
		group.Go(func() error { return r.object(inner, o) })
	}
	if err := group.Wait(); err != nil {
		return r.read, err
	}
	if access && r.read.IsAccessOn {
		err = r.access(ctx)
	}
	return r.read, err
}

// reader is one call of Read.
type reader struct {
	*Server

	extent   Extent
	wanted   ascode.World
	policies map[string]map[string]client.MaintenancePolicy // by scope; nil for Named

	mu   sync.Mutex // guards World of read, while several objects are read
	read Reading
}

// who reads who the caller is.
func (r *reader) who(ctx context.Context) error {
	var found client.Access
	if err := r.get(ctx, client.Path("access"), nil, &found); err != nil {
		return err
	}
	r.read.IsAccessOn = found.On
	r.read.Caller = ascode.Caller{
		Grantees: found.Grantees, Only: found.LimitedTo, IsFixed: !found.On || found.AlwaysAdministrator,
	}
	return nil
}

func (s *Server) get(ctx context.Context, path string, query url.Values, answer any) error {
	return s.Client.Do(ctx, client.Request{Method: http.MethodGet, Path: path, Query: query}, answer)
}

// listPolicies reads the maintenance policies of all objects.
func (r *reader) listPolicies(ctx context.Context) error {
	r.policies = make(map[string]map[string]client.MaintenancePolicy)
	list := client.Request{Method: http.MethodGet, Path: client.Path("maintenance", "policies")}
	return client.Pages(ctx, r.Client, list, func(page client.MaintenanceScopesPage) bool {
		for _, each := range page.Scopes {
			r.policies[each.Scope] = each.Policies
		}
		return true
	})
}

// found is an object to read, with what a list has shown of it.
type found struct {
	ascode.Object
	row   *client.Row // of a namespace, table or view; nil if no list was read
	scope string      // of its maintenance policies
}

// objects returns the objects to read.
func (r *reader) objects(ctx context.Context, wanted ascode.World) (objects []found, err error) {
	objects = []found{{scope: "server"}}
	if r.extent == Named {
		for o := range wanted {
			if o.Kind > ascode.RoleKind {
				objects = append(objects, found{Object: o})
			}
		}
		return objects, nil
	}
	var warehouses []string
	list := client.Request{Method: http.MethodGet, Path: client.Path("warehouses")}
	err = client.Pages(ctx, r.Client, list, func(page client.WarehousesPage) bool {
		for _, each := range page.Warehouses {
			warehouses = append(warehouses, each.Name)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	for _, name := range warehouses {
		objects = append(objects, found{Object: ascode.Object{Kind: ascode.WarehouseKind, Warehouse: name}})
		within, err := r.within(ctx, name)
		if err != nil {
			return nil, err
		}
		objects = append(objects, within...)
	}
	return objects, nil
}

// within lists what is in a warehouse.
func (r *reader) within(ctx context.Context, warehouse string) (objects []found, err error) {
	list := client.Request{Method: http.MethodGet, Path: client.Path("objects"), Query: url.Values{
		"warehouse": {warehouse}, "recursive": {"true"},
	}}
	err = client.Pages(ctx, r.Client, list, func(page client.ObjectsPage) bool {
		for _, row := range page.Objects {
			o := ascode.Object{Warehouse: warehouse, Path: ascode.PathOf(row.Namespace), Name: row.Name}
			scope := ""
			switch row.Kind {
			case client.KindNamespace:
				o.Kind, o.Path, o.Name = ascode.NamespaceKind, ascode.PathOf(row.Levels()), ""
				scope = "n/" + row.ID
			case client.KindTable:
				o.Kind = ascode.TableKind
				scope = "t/" + row.ID
			case client.KindView:
				o.Kind = ascode.ViewKind
			}
			objects = append(objects, found{o, &row, scope})
		}
		return true
	})
	return objects, err
}

// object reads the facts of one object, if it exists.
func (r *reader) object(ctx context.Context, o found) error {
	facts := make(ascode.Facts)
	var attributes []ascode.Attribute
	isLeaf := o.Kind == ascode.TableKind || o.Kind == ascode.ViewKind
	isBrief := isLeaf && r.extent == Whole && r.wanted[o.Object] == nil
	switch {
	case o.Kind == ascode.ServerKind:
	case o.Kind == ascode.WarehouseKind:
		attributes = []ascode.Attribute{ascode.Storage, ascode.Protected}
	case !isBrief || o.row.Labelled:
		attributes = []ascode.Attribute{ascode.Property}
		fallthrough
	default:
		if o.row == nil || o.row.Protected {
			attributes = append(attributes, ascode.Protected)
		}
	}
	switch {
	case o.Kind == ascode.ViewKind: // views have no maintenance
	case o.Kind == ascode.ServerKind && r.policies == nil && len(r.wanted[o.Object]) == 0:
	case r.policies == nil || o.Kind == ascode.WarehouseKind: // a list of warehouses has no ids
		attributes = append(attributes, ascode.Maintenance)
	default:
		addPolicies(facts, r.policies[o.scope])
	}
	for _, attribute := range attributes {
		there, err := r.some(ctx, o.Object, attribute, facts, nil)
		if err != nil {
			return fmt.Errorf("read %s: %w", o, err)
		}
		if !there {
			return nil
		}
	}
	if isBrief {
		maps.DeleteFunc(facts, func(fact ascode.Fact, _ string) bool { return fact.Attribute == ascode.Property })
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.read.World[o.Object] == nil {
		r.read.World[o.Object] = facts
	}
	maps.Copy(r.read.World[o.Object], facts)
	return nil
}

// ofObject returns o in the form of the management API.
func ofObject(o ascode.Object) client.Object {
	made := client.Object{Warehouse: o.Warehouse, Namespace: o.Levels()}
	switch o.Kind {
	case ascode.TableKind:
		made.Table = o.Name
	case ascode.ViewKind:
		made.View = o.Name
	}
	return made
}

// isMissing reports whether a server answered that something does not exist.
func isMissing(err error) bool {
	answered, ok := errors.AsType[*client.Error](err)
	return ok && answered.IsMissing()
}

// some adds the facts of an object that are read together with those about attribute. there is
// false if the object does not exist. tag gets the ETag of a warehouse, a role or grants, unless it
// is nil.
func (s *Server) some(ctx context.Context, o ascode.Object, attribute ascode.Attribute, facts ascode.Facts,
	tag *string) (there bool, err error) {
	switch attribute {
	case ascode.Location, ascode.AllowedLocation, ascode.Storage, ascode.Delegation, ascode.Secret:
		err = s.warehouse(ctx, o, facts, tag)
	case ascode.Property, ascode.Label, ascode.ColumnLabel:
		if o.Kind == ascode.WarehouseKind {
			err = s.warehouse(ctx, o, facts, tag)
			break
		}
		return s.details(ctx, o, facts)
	case ascode.Protected:
		var found client.Protection
		if err = s.get(ctx, client.Path("protection"), ofObject(o).Query(), &found); found.Protected {
			facts[ascode.Fact{Attribute: ascode.Protected}] = "true"
		}
	case ascode.Maintenance:
		var found client.MaintenanceStatus
		err = s.get(ctx, client.Path("maintenance", "status"), ofObject(o).Query(), &found)
		addPolicies(facts, found.Policies)
	case ascode.Owner, ascode.Managed, ascode.Grant:
		var page client.GrantsPage
		read := client.Request{
			Method: http.MethodGet, Path: client.Path("grants"), Query: ofObject(o).Query(), Tag: tag,
		}
		err = s.Client.Do(ctx, read, &page)
		for _, each := range page.Grants {
			addGrants(facts, each)
		}
	case ascode.Member, ascode.Description:
		var role client.Role
		read := client.Request{Method: http.MethodGet, Path: client.Path("roles", o.Name), Tag: tag}
		if err = s.Client.Do(ctx, read, &role); err == nil {
			addRole(facts, role)
		}
	}
	if isMissing(err) {
		return false, nil
	}
	return err == nil, err
}

func (s *Server) warehouse(ctx context.Context, o ascode.Object, facts ascode.Facts, tag *string) error {
	var found client.Warehouse
	read := client.Request{Method: http.MethodGet, Path: client.Path("warehouses", o.Warehouse), Tag: tag}
	if err := s.Client.Do(ctx, read, &found); err != nil {
		return err
	}
	facts[ascode.Fact{Attribute: ascode.Location}] = found.Location
	for _, location := range found.AllowedLocations {
		facts[ascode.Fact{Attribute: ascode.AllowedLocation, Key: location}] = ""
	}
	addPairs(facts, ascode.Storage, found.Storage)
	addPairs(facts, ascode.Property, found.Properties)
	if len(found.Delegation) > 0 {
		facts[ascode.Fact{Attribute: ascode.Delegation}] = strings.Join(found.Delegation, ",")
	}
	if found.Secret != nil {
		facts[ascode.Fact{Attribute: ascode.Secret}] = found.Secret.Kind
	}
	return nil
}

// details adds the properties and the labels of a namespace, table or view.
func (s *Server) details(ctx context.Context, o ascode.Object, facts ascode.Facts) (there bool, err error) {
	found, there, err := s.loadObject(ctx, o)
	if err != nil || !there {
		return false, err
	}
	addPairs(facts, ascode.Property, found.Properties)
	if found.Labels == nil {
		return true, nil
	}
	addPairs(facts, ascode.Label, found.Labels.ObjectLabels)
	for _, field := range found.Labels.Fields {
		for name, value := range field.Labels {
			column := columnOf(found.Columns, field.FieldID)
			facts[ascode.Fact{Attribute: ascode.ColumnLabel, Key: column, Item: name}] = value
		}
	}
	return true, nil
}

// loadObject loads a namespace, table or view. there is false if no object of its kind has its
// name.
func (s *Server) loadObject(ctx context.Context, o ascode.Object) (
	loaded client.ObjectDetails, there bool, err error) {
	levels := o.Levels()
	if o.Kind != ascode.NamespaceKind {
		levels = append(levels, o.Name)
	}
	query := url.Values{"warehouse": {o.Warehouse}, "path": {client.JoinLevels(levels)}}
	err = s.get(ctx, client.Path("object"), query, &loaded)
	if err == nil && o.Kind == ascode.NamespaceKind && loaded.Kind != client.KindNamespace {
		// A table or view with the name of the namespace hides it here.
		var namespace client.LoadedNamespace
		whole := client.Request{Method: http.MethodGet, Whole: client.NamespacePath(o.Warehouse, levels)}
		if err = s.Client.Do(ctx, whole, &namespace); err == nil {
			return client.ObjectDetails{Properties: namespace.Properties}, true, nil
		}
	}
	if isMissing(err) || err == nil && loaded.Kind != o.Kind.String() {
		return loaded, false, nil
	}
	return loaded, err == nil, err
}

// columnOf returns the path of the column with an id; "#" and the id if the schema has lost it.
func columnOf(columns []client.Column, id int) string {
	for _, column := range columns {
		if column.ID == id {
			return column.Path
		}
	}
	return "#" + strconv.Itoa(id)
}

func addPairs(facts ascode.Facts, attribute ascode.Attribute, values map[string]string) {
	for key, value := range values {
		facts[ascode.Fact{Attribute: attribute, Key: key}] = value
	}
}

func addPolicies(facts ascode.Facts, policies map[string]client.MaintenancePolicy) {
	for of, policy := range policies {
		rule := ascode.Rule{Status: policy.Status, Unsafe: policy.Unsafe}
		for name, value := range policy.Settings[of] {
			if rule.Settings == nil {
				rule.Settings = make(map[string]string)
			}
			text := string(value)
			if unquoted, err := strconv.Unquote(text); err == nil {
				text = unquoted
			}
			rule.Settings[name] = text
		}
		facts[ascode.Fact{Attribute: ascode.Maintenance, Key: of}] = rule.Text()
	}
}

func addGrants(facts ascode.Facts, found client.ObjectGrants) {
	for _, grant := range found.Grants {
		for _, privilege := range grant.Privileges {
			facts[ascode.Fact{Attribute: ascode.Grant, Key: grant.Grantee, Item: privilege}] = ""
		}
	}
	if found.Managed {
		facts[ascode.Fact{Attribute: ascode.Managed}] = "true"
	}
	if found.Owner != "" && !found.OwnerIsCreator {
		facts[ascode.Fact{Attribute: ascode.Owner}] = found.Owner
	}
}

func addRole(facts ascode.Facts, role client.Role) {
	if role.Description != "" {
		facts[ascode.Fact{Attribute: ascode.Description}] = role.Description
	}
	for _, member := range role.Members {
		facts[ascode.Fact{Attribute: ascode.Member, Key: member}] = ""
	}
}

// access reads the roles, and the grants and owners of the objects that were read.
func (r *reader) access(ctx context.Context) error {
	var all client.Export
	if err := r.get(ctx, client.Path("access", "export"), nil, &all); err != nil {
		return err
	}
	world := r.read.World
	for _, role := range all.Roles {
		facts := make(ascode.Facts)
		addRole(facts, role)
		world[ascode.Object{Kind: ascode.RoleKind, Name: role.Name}] = facts
	}
	for _, each := range all.Grants {
		o := ascode.Object{Warehouse: each.Object.Warehouse, Path: ascode.PathOf(each.Object.Namespace)}
		switch {
		case each.Object.IsServer():
		case each.Object.Table != "":
			o.Kind, o.Name = ascode.TableKind, each.Object.Table
		case each.Object.View != "":
			o.Kind, o.Name = ascode.ViewKind, each.Object.View
		case len(each.Object.Namespace) > 0:
			o.Kind = ascode.NamespaceKind
		default:
			o.Kind = ascode.WarehouseKind
		}
		if facts, isRead := world[o]; isRead {
			addGrants(facts, each)
		}
	}
	return nil
}

// Shown returns what an export describes: all but the tables and views without own settings.
func Shown(w ascode.World) ascode.World {
	shown := make(ascode.World, len(w))
	for o, facts := range w {
		isLeaf := o.Kind == ascode.TableKind || o.Kind == ascode.ViewKind
		if !isLeaf || len(facts) > 0 {
			shown[o] = facts
		}
	}
	return shown
}

// sortedKeys returns the keys of values in their order.
func sortedKeys[V any](values map[string]V) []string { return slices.Sorted(maps.Keys(values)) }
