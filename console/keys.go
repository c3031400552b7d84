package console

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage/internal/term"
	"moorage/management/client"
)

// The changes of keys.
const (
	keyCreate   = "create"
	keyRotate   = "rotate"
	keyWithdraw = "withdraw"
)

// keyAlias begins the names of principals that have keys.
const keyAlias = "key:"

// principalPage is a principal with its keys.
type principalPage struct {
	now       time.Time
	principal client.Principal
	needs     string // what the visitor lacks to change the keys; empty if nothing is known to be missing
}

// loadPrincipal loads a principal.
func loadPrincipal(ctx context.Context, v *visit) (*page, error) {
	model := principalPage{now: v.now}
	if err := v.get(ctx, client.Path("principals", v.text("principal")), nil, &model.principal); err != nil {
		return nil, err
	}
	model.needs = v.lacksForKeys(ctx, model.principal.Name)
	return &page{title: model.principal.Name, section: placePrincipals, crumbs: accessCrumbs(), body: model.node()}, nil
}

// lacksForKeys returns what the visitor lacks to change the keys of a principal. Everyone may
// change the own ones.
func (v *visit) lacksForKeys(ctx context.Context, principal string) string {
	if principal == v.name {
		return ""
	}
	return v.lacks(ctx, client.Object{}, "admin")
}

// accessCrumbs returns the link from a page about access to the page with all principals.
func accessCrumbs() []crumb {
	return []crumb{{name: "Access", to: to(placePrincipals, client.Object{})}, {name: "Principal"}}
}

// principalLink returns the name of a principal as a link to its page.
func principalLink(principal string) g.Node {
	return link(to(placePrincipal, client.Object{}, "principal", principal), name(principal))
}

// offered returns a link to a change, or why the visitor cannot make it. needs is what the visitor
// lacks; empty if nothing is known to be missing.
func offered(needs string, change target, words string) g.Node {
	if needs != "" {
		return h.Span(h.Class("off"), h.Title(term.Clean("needs "+needs)), g.Text(words))
	}
	return link(change, g.Text(words))
}

// node returns the page.
func (m principalPage) node() g.Node {
	p := m.principal
	about := []fact{{"Description", orDash(p.Description)}, {"Created", ago(m.now, p.Created)}}
	if p.SpeaksFor != "" {
		about = append(about, fact{"Acts for the users of", name(p.SpeaksFor)})
	}
	return g.Group{
		h.Div(h.Class("title"), h.H1(name(p.Name)), g.If(p.Disabled, badge("bad", "disabled"))),
		facts(about...), mayLink(p.Name),
		g.Iff(strings.HasPrefix(p.Name, keyAlias), func() g.Node {
			return panel("Keys", m.keys(), keyForm(p.Name, m.needs))
		}),
		g.If(!strings.HasPrefix(p.Name, keyAlias), h.P(h.Class("faint"), g.Text("Principals of an identity provider "+
			"or with a certificate have no keys."))),
	}
}

// mayLink returns the link from a principal to what it may do.
func mayLink(principal string) g.Node {
	return h.P(h.Class("more"), link(to(placeGrants, client.Object{}, "caller", principal, "privilege", privileges[0]),
		g.Text("What it may do, and grants to it")))
}

// orDash returns a text, or a dash for an empty one.
func orDash(s string) g.Node {
	if s == "" {
		return dash()
	}
	return text(s)
}

// keys returns the keys of the principal.
func (m principalPage) keys() g.Node {
	list := grid{label: "Keys", columns: []column{
		{"Key", ""}, {"Description", "wide"}, {"Limited to roles", ""}, {"Rotations", "num"}, {"Made", ""}, {"By", ""},
		{"Ends", ""}, {"", "next"},
	}}
	for _, k := range m.principal.Keys {
		change := func(what string) target {
			return to(placeKey, client.Object{}, "change", what, "principal", m.principal.Name, "key", k.ID)
		}
		rotations, ends := max(0, int64(k.Generation)-1), exact(k.Ends)
		if !k.Ends.After(m.now) {
			ends = g.Group{badge("bad", "ended"), g.Text(" "), ends}
		}
		list.rows = append(list.rows, []cell{
			plain(mono(k.ID)), plain(orDash(k.Description)), plain(orDash(strings.Join(k.Roles, ", "))),
			numeric(number(&rotations), &rotations), timed(m.now, &k.Created), plain(caller(k.By)),
			{ends, strconv.FormatInt(k.Ends.UnixMilli(), 10)},
			plain(h.Span(h.Class("actions"), offered(m.needs, change(keyRotate), "rotate …"),
				offered(m.needs, change(keyWithdraw), "withdraw …"))),
		})
	}
	words := strings.TrimPrefix(m.principal.Name, keyAlias)
	return filled(list, "This principal has no key.", command("moorage", "key", "create", words))
}

// keyDays are the lives of keys that the form offers, in days.
var keyDays = []string{"90", "30", "7", "1", "365"}

// keyDaysMax bounds the life of a key that an address asks for.
const keyDaysMax = 3650

// keyForm returns the form that prepares a new key. principal is empty if the visitor types the
// name.
func keyForm(principal, needs string) g.Node {
	who := g.Node(h.Input(h.Type("hidden"), h.Name("principal"), h.Value(term.Clean(principal))))
	if principal == "" {
		who = h.Label(g.Text("Name "), h.Input(h.Name("principal"), h.Required(), h.Placeholder("ann"),
			g.If(needs != "", h.Disabled())))
	}
	return h.Div(h.Class("tools"), ask(to(placeKey, client.Object{}, "change", keyCreate),
		who,
		h.Label(g.Text("Description "), h.Input(h.Name("description"), h.Placeholder("nightly jobs"),
			g.If(needs != "", h.Disabled()))),
		h.Label(g.Text("Valid for "), h.Select(h.Name("days"), g.If(needs != "", h.Disabled()),
			g.Map(keyDays, func(days string) g.Node { return h.Option(h.Value(days), g.Text(days+" days")) }))),
		h.Button(g.If(needs != "", h.Disabled()), g.Text("Make a key …"))),
		g.If(needs != "", h.Span(h.Class("minus"), text("needs "+needs))))
}

// loadKey prepares a change of the keys of a principal.
func loadKey(ctx context.Context, v *visit) (*page, error) {
	principal, id, change := v.text("principal"), v.text("key"), v.text("change")
	if principal == "" || id == "" && change != keyCreate {
		return nil, &client.Error{Code: http.StatusBadRequest, Message: "The address names no principal or no key."}
	}
	if !strings.Contains(principal, ":") {
		principal = keyAlias + principal
	}
	var made prepared
	var err error
	switch change {
	case keyCreate:
		made, err = preparedCreate(v, principal)
	case keyRotate, keyWithdraw:
		made, err = preparedKeyChange(ctx, v, change, principal, id)
	default:
		err = &client.Error{Code: http.StatusBadRequest, Message: "There is no such change."}
	}
	if err != nil {
		return nil, err
	}
	made.needs, made.key = v.lacksForKeys(ctx, principal), newKey()
	made.back = to(placePrincipal, client.Object{}, "principal", principal)
	return &page{title: made.title, section: placePrincipals, crumbs: accessCrumbs(),
		body: g.Group{h.Div(h.Class("title"), h.H1(name(principal))), made.node()}}, nil
}

// keysPath returns the path of a principal's keys, or of what is in it.
func keysPath(principal string, rest ...string) string {
	return client.RootManagement + client.Path(append([]string{"principals", principal, "keys"}, rest...)...)
}

// preparedCreate returns the prepared making of a key. The form of the visit has its life.
func preparedCreate(v *visit, principal string) (prepared, error) {
	days, err := strconv.Atoi(cmp.Or(v.text("days"), keyDays[0]))
	if err != nil || days < 1 || days > keyDaysMax {
		return prepared{}, &client.Error{
			Code:    http.StatusBadRequest,
			Message: "The days are not a number from 1 to " + strconv.Itoa(keyDaysMax) + ".",
		}
	}
	purpose, ends := v.text("description"), v.now.AddDate(0, 0, days).UTC().Truncate(time.Second)
	bare := strings.TrimPrefix(principal, keyAlias)
	words := []string{"moorage", "key", "create", bare, "--expires", strconv.Itoa(days) + "d"}
	if purpose != "" {
		words = append(words, "--description", purpose)
	}
	body, err := json.Marshal(client.KeySpec{Description: purpose, Ends: ends})
	return prepared{
		title: "Make a key", button: "Make the key", path: keysPath(principal), body: body, sentTo: placeMakeKey,
		command: command(words...),
		says: []g.Node{
			g.Group{name(principal), g.Text(" gets another key, which ends "),
				h.Strong(text(ends.Format("2006-01-02 15:04") + " UTC")), g.Text(".")},
			g.Text("The next page shows the key. No page shows it again."),
		},
	}, err
}

// preparedKeyChange returns the prepared change of a key. The page shows the key as the API knows
// it: an address can have any words in it.
func preparedKeyChange(ctx context.Context, v *visit, change, principal, id string) (prepared, error) {
	var of client.Principal
	if err := v.get(ctx, client.Path("principals", principal), nil, &of); err != nil {
		return prepared{}, err
	}
	at := slices.IndexFunc(of.Keys, func(k client.Key) bool { return k.ID == id })
	if at < 0 {
		return prepared{}, &client.Error{
			Code: http.StatusNotFound, Message: principal + " has no key " + id + ".",
			Help: "It may have been withdrawn meanwhile. Look at the keys of the principal.",
		}
	}
	key := of.Keys[at]
	if change == keyRotate {
		return preparedRotate(principal, id)
	}
	made := preparedWithdraw(principal, id)
	called := g.Text("")
	if key.Description != "" {
		called = text(" “" + key.Description + "”")
	}
	made.says = append([]g.Node{g.Group{g.Text("This is the key "), mono(id), called, g.Text(", made "),
		ago(v.now, key.Created), by(key.By), g.Text(", which ends "), exact(key.Ends), g.Text(".")}},
		made.says...)
	if principal == v.name {
		made.warnings = append(made.warnings,
			"This is a key of yours. If you signed in with it, you are signed out at once.")
	}
	isOther := func(k client.Key) bool { return k.ID != id && k.Ends.After(v.now) }
	if !slices.ContainsFunc(of.Keys, isOther) {
		made.warnings = append(made.warnings, "It is the last key of "+principal+" that has not ended.")
	}
	return made, nil
}

// preparedRotate returns the prepared rotation of a key.
func preparedRotate(principal, id string) (prepared, error) {
	body, err := json.Marshal(client.KeySpec{GraceSeconds: int64(rotateGrace / time.Second)})
	return prepared{
		title: "Give a key another secret", button: "Rotate the key",
		path: keysPath(principal, id, "rotate"), body: body, sentTo: placeMakeKey,
		command: command("moorage", "key", "rotate", strings.TrimPrefix(principal, keyAlias), id),
		says: []g.Node{
			g.Group{g.Text("The key "), mono(id), g.Text(" of "), name(principal),
				g.Text(" gets another secret, which the next page shows once.")},
			g.Text("The present secret stays valid for a day, so that clients can change to the new one."),
		},
	}, err
}

// preparedWithdraw returns the prepared end of a key.
func preparedWithdraw(principal, id string) prepared {
	return prepared{
		title: "Withdraw a key", button: "Withdraw the key", isFinal: true, path: keysPath(principal, id),
		method:  http.MethodDelete,
		sentTo:  placeWithdraw,
		command: command("moorage", "key", "withdraw", strings.TrimPrefix(principal, keyAlias), id),
		says: []g.Node{
			g.Group{g.Text("The key "), mono(id), g.Text(" of "), name(principal),
				g.Text(" ends at once, with the tokens that were issued for it.")},
			g.Text("Every server refuses the next request with it. A withdrawn key does not come back."),
		},
	}
}

// rotateGrace is how long the present secret of a key stays valid after a rotation.
const rotateGrace = 24 * time.Hour

// secretPaths matches the operations whose answer has the secret of a key.
var secretPaths = regexp.MustCompile(`^/management/v1/principals/[^/?]+/keys(/[^/?]+/rotate)?$`)

// showKey makes a key, or another secret of a key, and returns the page with it. The secret is only
// in this answer: in no address, in no cookie, and in nothing that a browser keeps. The same form
// does not get it again.
func showKey(ctx context.Context, v *visit) (*page, error) {
	body := json.RawMessage(v.form.Get(fieldBody))
	if !json.Valid(body) || !secretPaths.MatchString(v.form.Get(fieldPath)) {
		return nil, errIncomplete()
	}
	v.setKey(v.form.Get(fieldKey))
	if v.key == "" {
		return nil, errIncomplete()
	}
	form := v.name + "\x00" + v.key
	if v.secrets.wasShown(form, v.now) {
		return shownBefore(back(v.form.Get(fieldBack))), nil
	}
	var made client.MadeKey
	asked := client.Request{Method: http.MethodPost, Whole: v.form.Get(fieldPath), Body: body}
	if err := v.api.Do(ctx, asked, &made); err != nil {
		return nil, err
	}
	v.secrets.show(form, v.now)
	return &page{title: "A key of " + made.Principal, section: placePrincipals, crumbs: accessCrumbs(),
		body: secretNode(v.now, made)}, nil
}

// shownBefore returns the page for a form that was answered with a secret. next is the page to go
// on with.
func shownBefore(next target) *page {
	return &page{
		title: "This secret was shown once", status: http.StatusGone, section: placePrincipals, crumbs: accessCrumbs(),
		body: h.Div(h.Class("problem"),
			h.H1(g.Text("This secret was shown once")),
			h.P(g.Text("The form was sent before, and its answer had the secret. No page shows a secret again.")),
			h.P(h.Class("faint"), g.Text("If you did not copy it, make another key, and withdraw this one.")),
			h.P(link(next, h.Class("button"), g.Text("To the keys"))),
		),
	}
}

// secretsShown remembers which forms were answered with a secret. A browser sends a form again when
// its page is reloaded, and the API would answer with the same secret. It is safe for concurrent
// use.
type secretsShown struct {
	mu sync.Mutex // guards the field below; leaf
	// ends has when to forget each form. A form is named by the visitor and its Idempotency-Key.
	ends map[string]time.Time
}

// secretsShownMax bounds the forms that are remembered. The API remembers fewer.
const secretsShownMax = 10_000

// wasShown reports whether a form was answered with a secret.
func (s *secretsShown) wasShown(form string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Before(s.ends[form])
}

// show remembers a form for as long as the session can last from which it was sent.
func (s *secretsShown) show(form string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	oldest := form
	for each, end := range s.ends {
		if !now.Before(end) {
			delete(s.ends, each)
		} else if oldest == form || end.Before(s.ends[oldest]) {
			oldest = each
		}
	}
	if len(s.ends) >= secretsShownMax {
		delete(s.ends, oldest)
	}
	s.ends[form] = now.Add(sessionLife)
}

// withdrawPaths matches the operation that ends a key.
var withdrawPaths = regexp.MustCompile(`^/management/v1/principals/[^/?]+/keys/[^/?]+$`)

// changeWithdraw ends a key.
func changeWithdraw(ctx context.Context, v *visit) (target, error) {
	next := back(v.form.Get(fieldBack))
	if !withdrawPaths.MatchString(v.form.Get(fieldPath)) {
		return target{}, errIncomplete()
	}
	v.setKey(v.form.Get(fieldKey))
	asked := client.Request{Method: http.MethodDelete, Whole: v.form.Get(fieldPath)}
	if err := v.api.Do(ctx, asked, nil); err != nil {
		return target{}, err
	}
	next.more.Set(doneParam, "yes")
	return next, nil
}

// secretNode returns the page with the secret of a key.
func secretNode(now time.Time, made client.MadeKey) g.Node {
	return g.Group{
		h.Div(h.Class("title"), h.H1(g.Text("A key of "), name(made.Principal))),
		h.P(h.Class("warning"),
			g.Text("Copy the key now. The server keeps only its hash, and no page shows it again.")),
		h.Div(h.Data("once", ""), listing([]string{made.Secret})),
		facts(fact{"Id", mono(made.ID)}, fact{"Ends", exact(made.Ends)}, fact{"Description", orDash(made.Description)}),
		h.P(g.Text("Clients send it as a bearer token, or as a credential. To use it on a command line:")),
		h.Div(h.Data("once", ""), listing([]string{"export MOORAGE_TOKEN=" + made.Secret})),
		h.P(g.Text("A new principal may do nothing until it gets a grant, or a role that has one.")),
		mayLink(made.Principal),
		h.P(link(to(placePrincipal, client.Object{}, "principal", made.Principal), h.Class("button"), g.Text("Done"))),
	}
}

// ownKeys returns the link to the visitor's own keys, if the visitor has any.
func ownKeys(visitor string) g.Node {
	if !strings.HasPrefix(visitor, keyAlias) {
		return nil
	}
	return h.P(h.Class("lead"), g.Text("Your own keys: "), principalLink(visitor))
}

// firstEnd returns when the first of some keys ends; nil without keys.
func firstEnd(keys []client.Key) *time.Time {
	if len(keys) == 0 {
		return nil
	}
	first := slices.MinFunc(keys, func(a, b client.Key) int { return a.Ends.Compare(b.Ends) })
	return &first.Ends
}
