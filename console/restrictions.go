package console

import (
	"context"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage/internal/term"
	"moorage/management/client"
)

// restrictions has what restricts callers on an object although a grant permits a change.
type restrictions struct {
	protection client.Protection
	mirror     string            // the catalog that the object follows; empty for none
	access     client.Access     // of the visitor's credential
	asked      *client.Principal // that the visitor asks about; nil if the visitor may not see it
	dropped    []client.Dropped  // earlier objects of the name
}

// loadRestrictions loads what restricts callers on an object, as far as the visitor may see it.
// principal is whom the visitor asks about; it can be empty.
func loadRestrictions(ctx context.Context, v *visit, o client.Object, principal string) (*restrictions, error) {
	made := &restrictions{}
	if !o.IsServer() {
		if err := v.get(ctx, "/protection", o.Query(), &made.protection); optional(err) != nil {
			return nil, err
		}
	}
	if o.Table+o.View != "" {
		details, err := loadObject(ctx, v, o)
		if optional(err) != nil {
			return nil, err
		}
		if details != nil {
			made.mirror = details.Mirror
		}
		made.dropped = droppedOf(ctx, v, o)
	}
	if strings.Contains(principal, ":") {
		var asked client.Principal
		err := v.get(ctx, client.Path("principals", principal), nil, &asked)
		if optional(err) != nil {
			return nil, err
		}
		if err == nil {
			made.asked = &asked
		}
	}
	return made, nil
}

// node returns the restrictions as a part of the page of m.
func (r *restrictions) node(m grantsPage) g.Node {
	if r == nil {
		return nil
	}
	const refused = "No caller may drop, purge, unregister or rename it, or register over it. To end that: "
	const counts = "Only grants to these roles and to everyone count for it: "
	var all []fact
	add := func(title string, value ...g.Node) { all = append(all, fact{term.Clean(title), g.Group(value)}) }
	switch {
	case r.protection.Protected:
		add("Protected", g.Text(refused),
			copied(command("moorage", "protect", nameOf(m.object), "--off").text))
	case r.protection.By != nil:
		add("Protected by "+r.protection.By.String(),
			g.Text(refused),
			copied(command("moorage", "protect", nameOf(*r.protection.By), "--off").text))
	}
	if r.mirror != "" {
		add("Mirror", g.Text("It follows "), name(r.mirror), g.Text(", so commits, renames and drops of it are "+
			"refused. When nothing writes to that catalog any more, the end of the import makes it an ordinary one. "+
			"Name the kind and the place of the import: "),
			copied(command("moorage", "import", "cutover", "KIND", "PLACE", "--source-frozen").text))
	}
	for _, d := range r.dropped {
		if d.State == client.StateEnded {
			continue
		}
		add("An earlier "+d.Kind+" of this name", g.Text("It was dropped "), ago(m.now, d.At), by(d.By),
			g.Text(". Its location stays taken until it cannot come back and its purge has ended. "),
			link(to(placeDropped, client.Object{Warehouse: d.Warehouse, Namespace: d.Namespace}),
				g.Text("What was dropped")))
	}
	if r.access.LimitedTo != nil {
		add("Your credential", g.Text(counts),
			text(strings.Join(orNone(r.access.LimitedTo, "no role"), ", ")))
	}
	if p := r.asked; p != nil {
		if p.Disabled {
			add(p.Name, g.Text("It is disabled: the server refuses all its requests."))
		}
		for _, key := range p.Keys {
			if len(key.Roles) > 0 && key.Ends.After(m.now) {
				add("The key "+key.ID+" of "+p.Name, g.Text(counts),
					text(strings.Join(key.Roles, ", ")))
			}
		}
	}
	for _, on := range m.onPath {
		if on.Managed {
			add("Managed: "+on.Object.String(), g.Text("Owners of what is in it may not grant privileges."))
		}
	}
	if len(all) == 0 {
		return panel("Restrictions", h.P(h.Class("faint"),
			g.Text("Nothing that you may see restricts callers further.")))
	}
	return panel("Restrictions", h.P(h.Class("faint"), g.Text("These hold although a grant permits the change.")),
		facts(all...))
}
