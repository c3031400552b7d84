package audit

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"moorage/internal/jsontext"
)

// Event is the kind of event that a line reports.
type Event string

// The events.
const (
	Decision     Event = "decision"               // a decision about a request
	TokenIssued  Event = "token-issued"           // the token endpoint issued a token
	KeyMade      Event = "key-made"               // an API key, or a further secret for one, was created
	KeyWithdrawn Event = "key-withdrawn"          // an API key ended
	Vended       Event = "credential-vended"      // an engine got a credential for the files of a table
	Signed       Event = "request-signed"         // an engine's request to the storage was signed
	Refused      Event = "authentication-refused" // credentials were refused; Count is the number in a minute
	Dropped      Event = "lines-dropped"          // the buffer had no room for Count lines
)

// Line is one line of the log. Zero fields are left out. No field may contain a secret.
type Line struct {
	Time      time.Time // default: when the line is noted
	Event     Event
	RequestID string
	Caller    string
	Via       []string // engines that act in the caller's name, outermost first
	Source    string   // how the caller authenticated, as moorage.Source
	Address   string   // where the request came from
	Operation string   // the verb
	Object    Object
	Asked     []string // privileges
	Missing   []string // the privileges in Asked that the caller lacks
	Decision  string   // allow, forbid or hidden
	By        string   // the rule that allowed it: owner, or a grant
	// Through lists the views through which the caller reached the object, outermost first. As is
	// the owner whose privileges counted for the objects behind these views. It is empty if the
	// caller's own privileges counted. RefusedAt is the view that denied access. Ignored lists
	// views that the request reported, although its sender is not trusted to report views.
	Through   []string
	As        string
	RefusedAt string
	Ignored   []string
	Epoch     uint64 // epoch of the access policy used for the decision
	Status    int    // of the response
	Took      time.Duration

	Key       string // id of the API key
	Principal string // the key's principal, or the principal that gets a token
	Reason    string // why the credentials were refused

	Credential string    // id of the vended credential, or a part of its hash, which is not secret
	Mode       string    // read or write
	Locations  []string  // the locations that the credential gives access to
	Ends       time.Time // when the credential ends
	Method     string    // of the signed request
	Target     string    // SHA-256 of the path of the signed request

	// Outcome is the result of an allowed change: done, failed, or unknown. Commit is the id of its
	// change record. Effects are the objects that it created, changed or removed.
	Outcome string
	Commit  string
	Effects []Effect

	Node  string // the node that writes the line; default Config.Node
	Count int    // number of events that the line stands for

	// Sampled is true if the line is about an allowed read. Config.Reads decides how many of these
	// lines are written. If the buffer has no room, they are dropped first.
	Sampled bool
}

// Object is the object of a line. A server has no name.
type Object struct {
	Kind      string
	Warehouse string
	Namespace []string
	Name      string
	ID        string
}

// Effect is an object that a change created, changed or removed.
type Effect struct {
	Object          // its name after the change; for a removed object, its name before the change
	Was      string // the name before a rename
	Snapshot int64  // the snapshot of main after the change; 0 if there is none, or if the object is not a table
}

// effectsMax is the maximum number of effects in a line. If effects are omitted, the line has their
// number.
const effectsMax = 16

// Bounds of each text in a line, and of each list of texts. Without them, long names could push
// other lines out of the files. If elements of a list are omitted, the line has their number.
const (
	textBytesMax = 256
	listBytesMax = 1024
)

// append appends the line with its newline.
func (l *Line) append(dst []byte) []byte {
	w := members{append(dst, '{')}
	w.begin("time")
	w.text = append(w.text, '"')
	w.text = l.Time.UTC().AppendFormat(w.text, "2006-01-02T15:04:05.000000Z07:00")
	w.text = append(w.text, '"')
	w.string("event", string(l.Event))
	w.string("request-id", l.RequestID)
	w.string("caller", l.Caller)
	w.strings("via", l.Via)
	w.string("source", l.Source)
	w.string("address", l.Address)
	w.string("operation", l.Operation)
	w.object(l.Object)
	w.strings("asked", l.Asked)
	w.strings("missing", l.Missing)
	w.string("decision", l.Decision)
	w.string("by", l.By)
	w.strings("through", l.Through)
	w.string("as", l.As)
	w.string("refused-at", l.RefusedAt)
	w.strings("ignored", l.Ignored)
	w.number("epoch", int64(l.Epoch))
	w.number("status", int64(l.Status))
	w.number("micros", l.Took.Microseconds())
	w.string("outcome", l.Outcome)
	w.string("commit", l.Commit)
	w.effects(l.Effects)
	w.string("principal", l.Principal)
	w.string("key", l.Key)
	w.string("credential", l.Credential)
	w.string("mode", l.Mode)
	w.strings("locations", l.Locations)
	if !l.Ends.IsZero() {
		w.string("ends", l.Ends.UTC().Format(time.RFC3339))
	}
	w.string("method", l.Method)
	w.string("target", l.Target)
	w.string("reason", l.Reason)
	w.number("count", int64(l.Count))
	w.string("node", l.Node)
	return append(w.text, '}', '\n')
}

// members writes the members of a JSON object.
type members struct{ text []byte }

func (w *members) begin(name string) {
	if w.text[len(w.text)-1] != '{' {
		w.text = append(w.text, ',')
	}
	w.text = append(w.text, '"')
	w.text = append(w.text, name...)
	w.text = append(w.text, '"', ':')
}

func (w *members) string(name, value string) {
	if value != "" {
		w.begin(name)
		w.quote(value)
	}
}

func (w *members) quote(value string) {
	w.text = jsontext.AppendQuoted(w.text, clean(value[:min(len(value), textBytesMax)]))
}

// clean returns text without invalid UTF-8. It also removes characters that a terminal could take
// for a command, if JSON does not escape them.
func clean(text string) string {
	for i := range len(text) {
		if text[i] >= 0x7f {
			return strings.Map(func(r rune) rune {
				if r == utf8.RuneError || r >= 0x7f && unicode.IsControl(r) {
					return unicode.ReplacementChar
				}
				return r
			}, text)
		}
	}
	return text
}

func (w *members) strings(name string, values []string) {
	if len(values) == 0 {
		return
	}
	w.begin(name)
	w.text = append(w.text, '[')
	bytes := 0
	for i, value := range values {
		if i > 0 {
			w.text = append(w.text, ',')
		}
		if bytes += min(len(value), textBytesMax); bytes > listBytesMax {
			w.quote("… and " + strconv.Itoa(len(values)-i) + " more")
			break
		}
		w.quote(value)
	}
	w.text = append(w.text, ']')
}

func (w *members) number(name string, value int64) {
	if value != 0 {
		w.begin(name)
		w.text = strconv.AppendInt(w.text, value, 10)
	}
}

func (w *members) object(o Object) {
	if o.Kind == "" {
		return
	}
	w.begin("object")
	w.text = append(w.text, '{')
	w.partsOf(o)
	w.text = append(w.text, '}')
}

func (w *members) partsOf(o Object) {
	w.string("kind", o.Kind)
	w.string("warehouse", o.Warehouse)
	w.strings("namespace", o.Namespace)
	w.string("name", o.Name)
	w.string("id", o.ID)
}

func (w *members) effects(all []Effect) {
	if len(all) == 0 {
		return
	}
	w.begin("effects")
	w.text = append(w.text, '[')
	for i, effect := range all[:min(len(all), effectsMax)] {
		if i > 0 {
			w.text = append(w.text, ',')
		}
		w.text = append(w.text, '{')
		w.partsOf(effect.Object)
		w.string("was", effect.Was)
		w.number("snapshot", effect.Snapshot)
		w.text = append(w.text, '}')
	}
	w.text = append(w.text, ']')
	w.number("more-effects", int64(max(0, len(all)-effectsMax)))
}
