package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"moorage/ascode"
	"moorage/management/client"
)

// Conflict is the error of a step whose object is no longer what the plan was made for.
type Conflict struct {
	Step ascode.Step
	Why  string
}

// Error implements error.
func (c *Conflict) Error() string { return fmt.Sprintf("%s: %s", c.Step, c.Why) }

// conflictOf returns the Conflict of a step with a fact. present is the value of the fact now, or
// nil if the fact is not there.
func conflictOf(step ascode.Step, fact ascode.Fact, present *string) *Conflict {
	name := strings.TrimSpace(string(fact.Attribute) + " " + fact.Key + " " + fact.Item)
	now := "is gone"
	if present != nil {
		now = "is " + strconv.Quote(*present)
	}
	return &Conflict{step, fmt.Sprintf("%s %s since the plan was made", name, now)}
}

// Make makes one step. c is the catalog that the plan was made for. It makes nothing if the server
// already has all changes of the step. The server refuses to make an object that exists.
//
// Errors: *Conflict, and the errors of the server.
func (s *Server) Make(ctx context.Context, c ascode.Catalog, step ascode.Step) error {
	err := s.keepCaller(ctx, step)
	if err == nil {
		err = s.make(ctx, c, step)
	}
	if answered, ok := errors.AsType[*client.Error](err); ok && answered.IsOutdated() {
		return &Conflict{step, "it has changed since the plan was made"}
	}
	return err
}

func (s *Server) make(ctx context.Context, c ascode.Catalog, step ascode.Step) error {
	switch step.Do {
	case ascode.CreateWarehouse, ascode.CreateNamespace, ascode.DropNamespace, ascode.DropWarehouse, ascode.RemoveRole:
		return s.makeWhole(ctx, c, step)
	}
	present, tag := make(ascode.Facts), ""
	if step.IsNew {
		return s.change(ctx, c, step, present, tag)
	}
	read := make(map[string]bool)
	for _, change := range step.Changes {
		attribute := change.Fact.Attribute
		if key := groupOf(step.Object, attribute); !read[key] {
			read[key] = true
			if _, err := s.some(ctx, step.Object, attribute, present, &tag); err != nil {
				return err
			}
		}
	}
	left, err := remaining(step, present)
	if err != nil || len(left) == 0 {
		return err
	}
	step.Changes = left
	return s.change(ctx, c, step, present, tag)
}

// keepCaller refuses a step that would now take the caller's right as an administrator.
func (s *Server) keepCaller(ctx context.Context, step ascode.Step) error {
	if s.GivesUp || !step.MayLockOut() {
		return nil
	}
	r := &reader{Server: s, read: Reading{World: ascode.World{{}: {}}}}
	if err := r.who(ctx); err != nil {
		return err
	}
	world := r.read.World
	if _, err := s.some(ctx, ascode.Object{}, ascode.Grant, world[ascode.Object{}], nil); err != nil {
		return err
	}
	list := client.Request{Method: http.MethodGet, Path: client.Path("roles")}
	err := client.Pages(ctx, s.Client, list, func(page client.RolesPage) bool {
		for _, role := range page.Roles {
			facts := make(ascode.Facts)
			addRole(facts, role)
			world[ascode.Object{Kind: ascode.RoleKind, Name: role.Name}] = facts
		}
		return true
	})
	if err == nil && r.read.Caller.LocksOut(world, step) {
		err = &Conflict{step, "it would take your own right as an administrator of the server, because grants or " +
			"roles have changed since the plan was made"}
	}
	return err
}

// groupOf returns a name that attributes of o share if some reads them together.
func groupOf(o ascode.Object, attribute ascode.Attribute) string {
	switch attribute {
	case ascode.Property:
		if o.Kind == ascode.WarehouseKind {
			return string(ascode.Storage)
		}
	case ascode.Label, ascode.ColumnLabel:
		return string(ascode.Property)
	case ascode.AllowedLocation, ascode.Delegation, ascode.Secret:
		return string(ascode.Storage)
	}
	return string(attribute)
}

// remaining returns the changes of a step that are not made yet.
func remaining(step ascode.Step, present ascode.Facts) (left []ascode.Change, err error) {
	for _, change := range step.Changes {
		is, has := present[change.Fact]
		isDone := has == (change.Is != nil) && (!has || is == *change.Is)
		isAsPlanned := has == (change.Was != nil) && (!has || is == *change.Was)
		switch {
		case isDone:
		case isAsPlanned:
			left = append(left, change)
		default:
			if !has {
				return nil, conflictOf(step, change.Fact, nil)
			}
			return nil, conflictOf(step, change.Fact, &is)
		}
	}
	return left, nil
}

// makeWhole makes a step that creates or removes an object.
func (s *Server) makeWhole(ctx context.Context, c ascode.Catalog, step ascode.Step) error {
	o := step.Object
	request := client.Request{}
	switch step.Do {
	case ascode.CreateWarehouse:
		spec, err := s.warehouseSpec(c, o.Warehouse)
		if err != nil {
			return err
		}
		request = client.Request{Method: http.MethodPost, Path: client.Path("warehouses"), Body: spec}
	case ascode.CreateNamespace:
		properties := make(map[string]string)
		for _, change := range step.Changes {
			properties[change.Fact.Key] = *change.Is
		}
		body := client.LoadedNamespace{Namespace: o.Levels(), Properties: properties}
		path := client.IcebergPath(o.Warehouse, "namespaces")
		request = client.Request{Method: http.MethodPost, Whole: path, Body: body}
	case ascode.DropNamespace:
		request = client.Request{Method: http.MethodDelete, Whole: client.NamespacePath(o.Warehouse, o.Levels())}
	case ascode.DropWarehouse:
		request = client.Request{Method: http.MethodDelete, Path: client.Path("warehouses", o.Warehouse)}
	case ascode.RemoveRole:
		request = client.Request{Method: http.MethodDelete, Path: client.Path("roles", o.Name)}
	}
	err := s.Client.Do(ctx, request, nil)
	if request.Method == http.MethodDelete && isMissing(err) {
		return nil
	}
	return err
}

func (s *Server) warehouseSpec(c ascode.Catalog, name string) (spec client.WarehouseSpec, err error) {
	described := c.Warehouses[name]
	spec = client.WarehouseSpec{
		Name: name, Location: described.Location, AllowedLocations: described.AllowedLocations,
		Storage: described.Storage, Properties: described.Properties, Delegation: described.Delegation,
	}
	if described.Secret != nil {
		spec.Secret, err = s.Secret(described.Secret.Env)
	}
	return spec, err
}

// change makes the changes of a step, for an object with the facts that were read for it. tag is
// the ETag of what was read last, if it has one.
func (s *Server) change(ctx context.Context, c ascode.Catalog, step ascode.Step, present ascode.Facts,
	tag string) error {
	object := ofObject(step.Object)
	put := func(path string, body any) error {
		request := client.Request{Method: http.MethodPut, Path: path, Query: object.Query(), Body: body}
		return s.Client.Do(ctx, request, nil)
	}
	switch step.Do {
	case ascode.ChangeWarehouse:
		change, err := s.warehouseChange(c, step)
		if err != nil {
			return err
		}
		path := client.Path("warehouses", step.Object.Warehouse)
		patch := client.Request{Method: http.MethodPatch, Path: path, Body: change, IfMatch: tag}
		return s.Client.Do(ctx, patch, nil)
	case ascode.PutRole:
		return s.putRole(ctx, step, present, tag)
	case ascode.AddMembers, ascode.RemoveMembers:
		var change client.MembersChange
		for _, each := range step.Changes {
			if each.Is != nil {
				change.Add = append(change.Add, each.Fact.Key)
			} else {
				change.Remove = append(change.Remove, each.Fact.Key)
			}
		}
		path := client.Path("roles", step.Object.Name, "members")
		return s.Client.Do(ctx, client.Request{Method: http.MethodPatch, Path: path, Body: change}, nil)
	case ascode.AddGrants, ascode.RemoveGrants:
		return s.changeGrants(ctx, step)
	case ascode.SetManaged:
		body := client.Managed{Object: object, Managed: step.Changes[0].Is != nil}
		return s.Client.Do(ctx, client.Request{Method: http.MethodPut, Path: client.Path("managed"), Body: body}, nil)
	case ascode.SetOwner:
		body := client.Owner{Object: object}
		if is := step.Changes[0].Is; is != nil {
			body.Owner = *is
		}
		owner := client.Request{Method: http.MethodPut, Path: client.Path("owner"), Body: body, IfMatch: tag}
		return s.Client.Do(ctx, owner, nil)
	case ascode.SetProperties:
		return s.setProperties(ctx, step)
	case ascode.SetLabels:
		return s.setLabels(ctx, step)
	case ascode.SetPolicy, ascode.RemovePolicy:
		return s.changePolicy(ctx, step)
	case ascode.Protect, ascode.Unprotect:
		return put(client.Path("protection"), client.Protection{Protected: step.Do == ascode.Protect})
	}
	return fmt.Errorf("there is no request for: %s", step)
}

func (s *Server) warehouseChange(c ascode.Catalog, step ascode.Step) (made client.WarehouseChange, err error) {
	made = client.WarehouseChange{Storage: make(map[string]*string), Properties: make(map[string]*string)}
	for _, change := range step.Changes {
		switch key := change.Fact.Key; change.Fact.Attribute {
		case ascode.Storage:
			made.Storage[key] = change.Is
		case ascode.Property:
			made.Properties[key] = change.Is
		case ascode.AllowedLocation:
			if change.Is != nil {
				made.AllowLocations = append(made.AllowLocations, key)
			} else {
				made.RemoveLocations = append(made.RemoveLocations, key)
			}
		case ascode.Delegation:
			offered := []string{}
			if change.Is != nil {
				offered = strings.Split(*change.Is, ",")
			}
			made.Delegation = &offered
		case ascode.Secret:
			secret, err := s.Secret(c.Warehouses[step.Object.Warehouse].Secret.Env)
			if err != nil {
				return made, err
			}
			made.Secret = &secret
		}
	}
	return made, nil
}

// putRole makes a role, or gives it another description. present has the members that it keeps, as
// of tag. The server refuses if the role has others by now.
func (s *Server) putRole(ctx context.Context, step ascode.Step, present ascode.Facts, tag string) error {
	if !step.IsNew && tag == "" {
		return conflictOf(step, ascode.Fact{Attribute: ascode.Attribute(step.Object.Kind.String())}, nil)
	}
	role := client.Role{Members: []string{}}
	for fact := range present {
		if fact.Attribute == ascode.Member {
			role.Members = append(role.Members, fact.Key)
		}
	}
	for _, change := range step.Changes {
		switch {
		case change.Fact.Attribute == ascode.Member:
			role.Members = append(role.Members, change.Fact.Key)
		case change.Is != nil:
			role.Description = *change.Is
		}
	}
	slices.Sort(role.Members)
	put := client.Request{
		Method: http.MethodPut, Path: client.Path("roles", step.Object.Name), Body: role,
		IfMatch: tag, IfNew: step.IsNew,
	}
	return s.Client.Do(ctx, put, nil)
}

// changePolicy sets or removes a policy of maintenance. What make has read has no ETag of one
// policy, so changePolicy reads the policy again.
func (s *Server) changePolicy(ctx context.Context, step ascode.Step) error {
	change, query := step.Changes[0], ofObject(step.Object).Query()
	of := change.Fact.Key
	request := client.Request{Method: http.MethodDelete, Path: client.PolicyPath(of), Query: query}
	if change.Is != nil {
		request.Method, request.Body = http.MethodPut, policyOf(of, ascode.RuleOf(*change.Is))
	}
	var found client.MaintenancePolicy
	present := make(ascode.Facts)
	read := client.Request{Method: http.MethodGet, Path: request.Path, Query: query, Tag: &request.IfMatch}
	err := s.Client.Do(ctx, read, &found)
	switch {
	case err == nil:
		addPolicies(present, map[string]client.MaintenancePolicy{of: found})
	case !isMissing(err):
		return err
	}
	request.IfNew = err != nil
	left, err := remaining(step, present)
	if err != nil || len(left) == 0 {
		return err
	}
	return s.Client.Do(ctx, request, nil)
}

func (s *Server) changeGrants(ctx context.Context, step ascode.Step) error {
	privileges := make(map[string][]string)
	for _, change := range step.Changes {
		privileges[change.Fact.Key] = append(privileges[change.Fact.Key], change.Fact.Item)
	}
	var body client.GrantChanges
	for _, grantee := range sortedKeys(privileges) {
		change := client.GrantChange{
			Change: client.ChangeGrant, Object: ofObject(step.Object), Grantee: grantee,
			Privileges: privileges[grantee],
		}
		if step.Do == ascode.RemoveGrants {
			change.Change = client.ChangeRevoke
		}
		body.Changes = append(body.Changes, change)
	}
	return s.Client.Do(ctx, client.Request{Method: http.MethodPost, Path: client.Path("grants"), Body: body}, nil)
}

// setProperties changes properties of a namespace, table or view. For a table or view it makes a
// commit.
func (s *Server) setProperties(ctx context.Context, step ascode.Step) error {
	o := step.Object
	updates, removals := make(map[string]string), []string{}
	for _, change := range step.Changes {
		if change.Is != nil {
			updates[change.Fact.Key] = *change.Is
		} else {
			removals = append(removals, change.Fact.Key)
		}
	}
	if o.Kind == ascode.NamespaceKind {
		body := map[string]any{"updates": updates, "removals": removals}
		path := client.NamespacePath(o.Warehouse, o.Levels()) + "/properties"
		return s.Client.Do(ctx, client.Request{Method: http.MethodPost, Whole: path, Body: body}, nil)
	}
	loaded, there, err := s.loadObject(ctx, o)
	if err != nil {
		return err
	}
	if !there {
		return conflictOf(step, ascode.Fact{Attribute: ascode.Attribute(o.Kind.String())}, nil)
	}
	path := client.TablePath(o.Warehouse, o.Levels(), o.Name)
	if o.Kind == ascode.ViewKind {
		path = client.ViewPath(o.Warehouse, o.Levels(), o.Name)
	}
	commit := []map[string]any{}
	if len(updates) > 0 {
		commit = append(commit, map[string]any{"action": "set-properties", "updates": updates})
	}
	if len(removals) > 0 {
		commit = append(commit, map[string]any{"action": "remove-properties", "removals": removals})
	}
	body := map[string]any{
		"requirements": []map[string]string{{"type": "assert-" + o.Kind.String() + "-uuid", "uuid": loaded.UUID}},
		"updates":      commit,
	}
	return s.Client.Do(ctx, client.Request{Method: http.MethodPost, Whole: path, Body: body}, nil)
}

// setLabels changes some labels. The server refuses the change if others change the labels between
// the read and the write.
func (s *Server) setLabels(ctx context.Context, step ascode.Step) error {
	loaded, there, err := s.loadObject(ctx, step.Object)
	if err != nil {
		return err
	}
	if !there {
		return conflictOf(step, ascode.Fact{Attribute: ascode.Attribute(step.Object.Kind.String())}, nil)
	}
	var labels client.Labels
	tag := ""
	query := ofObject(step.Object).Query()
	read := client.Request{Method: http.MethodGet, Path: client.Path("labels"), Query: query, Tag: &tag}
	if err := s.Client.Do(ctx, read, &labels); err != nil {
		return err
	}
	for _, change := range step.Changes {
		name, of := change.Fact.Key, &labels.ObjectLabels
		if change.Fact.Attribute == ascode.ColumnLabel {
			id, err := fieldOf(loaded.Columns, change.Fact.Key)
			if err != nil {
				return fmt.Errorf("%s: %w", step, err)
			}
			at := slices.IndexFunc(labels.Fields, func(f client.FieldLabels) bool { return f.FieldID == id })
			if at < 0 {
				at = len(labels.Fields)
				labels.Fields = append(labels.Fields, client.FieldLabels{FieldID: id})
			}
			name, of = change.Fact.Item, &labels.Fields[at].Labels
		}
		if *of == nil {
			*of = make(map[string]string)
		}
		if change.Is != nil {
			(*of)[name] = *change.Is
		} else {
			delete(*of, name)
		}
	}
	write := client.Request{
		Method: http.MethodPut, Path: client.Path("labels"), Query: query, Body: labels, IfMatch: tag,
	}
	return s.Client.Do(ctx, write, nil)
}

// fieldOf returns the id of a column: of a path, or "#" and the id.
func fieldOf(columns []client.Column, name string) (int, error) {
	for _, column := range columns {
		if column.Path == name {
			return column.ID, nil
		}
	}
	if number, isID := strings.CutPrefix(name, "#"); isID {
		if id, err := strconv.Atoi(number); err == nil {
			return id, nil
		}
	}
	return 0, fmt.Errorf("there is no column %s", name)
}

// policyOf returns a rule in the form of the management API. Settings that are numbers go as such.
func policyOf(of string, rule ascode.Rule) client.MaintenancePolicy {
	policy := client.MaintenancePolicy{Status: rule.Status, Unsafe: rule.Unsafe}
	settings := make(client.MaintenanceSettings)
	for name, value := range rule.Settings {
		number, err := strconv.ParseInt(value, 10, 64)
		if err == nil && strconv.FormatInt(number, 10) == value { // JSON has no 007
			settings[name] = json.RawMessage(value)
			continue
		}
		settings[name], _ = json.Marshal(value) // a string can always be encoded
	}
	if len(settings) > 0 {
		policy.Settings = map[string]client.MaintenanceSettings{of: settings}
	}
	return policy
}
