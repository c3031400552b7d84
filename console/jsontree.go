package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage"
)

// jsonNode is a value of a JSON document, with the members or items in it in their order.
type jsonNode struct {
	key      string // as in the document, with quotes; empty for an item and for the document
	value    string // of a string, a number, a boolean or null
	open     string // { or [; empty for other values
	children []jsonNode
}

// Bounds of a tree. A document of more than documentBytesShown is not shown as a tree either.
const (
	// jsonNodesMax bounds the values of a document that is shown as a tree.
	jsonNodesMax = 20_000
	// jsonDepthMax is the depth from which on a document is not shown as a tree.
	jsonDepthMax = 64
	// jsonOpenMax is the most lines of a value that is unfolded at first.
	jsonOpenMax = 40
)

// errNoTree means that a document is too large for a tree, or is not JSON.
var errNoTree = errors.New("no tree")

// jsonTreeOf returns a JSON document as a tree.
func jsonTreeOf(raw []byte) (jsonNode, error) {
	if len(raw) > documentBytesShown { // a few long texts can be more than a page should have
		return jsonNode{}, errNoTree
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	left := jsonNodesMax
	return readNode(decoder, &left, 0)
}

// readNode reads a value. left is how many further values the tree may have.
func readNode(decoder *json.Decoder, left *int, depth int) (n jsonNode, err error) {
	token, err := decoder.Token()
	if *left--; err != nil || *left < 0 || depth > jsonDepthMax {
		return n, errors.Join(errNoTree, err)
	}
	delim, isOpen := token.(json.Delim)
	if !isOpen {
		n.value = compact(token)
		return n, nil
	}
	n.open = delim.String()
	for decoder.More() {
		key := ""
		if delim == '{' {
			name, err := decoder.Token()
			if err != nil {
				return n, errors.Join(errNoTree, err)
			}
			key = compact(name)
		}
		child, err := readNode(decoder, left, depth+1)
		if err != nil {
			return n, err
		}
		child.key = key
		n.children = append(n.children, child)
	}
	_, err = decoder.Token()
	return n, err
}

// lines returns how many lines the unfolded value has.
func (n jsonNode) lines() int {
	lines := 1
	for _, child := range n.children {
		lines += child.lines()
	}
	return lines
}

// with returns the value with only the parts in which a key or a value has words, in lower case,
// and how many of them there are.
func (n jsonNode) with(words string) (kept jsonNode, matches int) {
	if strings.Contains(strings.ToLower(n.key), words) || strings.Contains(strings.ToLower(n.value), words) {
		return n, 1
	}
	kept = n
	kept.children = nil
	for _, child := range n.children {
		if part, found := child.with(words); found > 0 {
			kept.children = append(kept.children, part)
			matches += found
		}
	}
	return kept, matches
}

// node returns the value as lists that fold. Everything is unfolded if isOpen is set, and small
// parts otherwise.
func (n jsonNode) node(isOpen bool) g.Node {
	key := g.Node(nil)
	if n.key != "" {
		key = g.Group{h.Span(h.Class("key"), text(n.key)), g.Text(": ")}
	}
	if n.open == "" {
		return h.Div(h.Class("leaf"), key, text(n.value))
	}
	noun, end := "member", "}"
	if n.open == "[" {
		noun, end = "item", "]"
	}
	if len(n.children) == 0 {
		return h.Div(h.Class("leaf"), key, g.Text(n.open+end))
	}
	return h.Details(g.If(isOpen || n.lines() <= jsonOpenMax, g.Attr("open")),
		h.Summary(key, g.Text(n.open+" "),
			h.Span(h.Class("faint"), g.Text(moorage.Counted(len(n.children), noun))), g.Text(" "+end)),
		h.Div(h.Class("inside"), g.Map(n.children, func(child jsonNode) g.Node { return child.node(isOpen) })))
}

// jsonShown returns a document as a tree, or as its text if it is too large for one. With words it
// returns only the parts that have them.
func jsonShown(raw json.RawMessage, words string) g.Node {
	tree, err := jsonTreeOf(raw)
	if err != nil {
		shown, isCut := pretty(raw)
		return g.Group{
			g.If(words != "", h.P(h.Class("faint"),
				g.Text("The file is too large or too deep for a tree. It cannot be searched here: download it."))),
			listingOf(shown),
			g.If(isCut, h.P(h.Class("faint"), g.Text("The rest of the file is left out here: download it.")))}
	}
	matches := 0
	if words != "" {
		if tree, matches = tree.with(strings.ToLower(words)); matches == 0 {
			return h.P(h.Class("faint"), g.Text("Nothing in this version has “"), text(words), g.Text("”."))
		}
	}
	return g.Group{
		g.If(words != "", h.P(h.Class("faint"),
			text(moorage.Counted(matches, "part")+" of the file with “"+words+"”"))),
		h.Div(h.Class("json"), h.TabIndex("0"), h.Role("region"), h.Aria("label", "Metadata as JSON"),
			tree.members(words != "")),
	}
}

// members returns the members of a document. Each folds.
func (n jsonNode) members(isOpen bool) g.Node {
	if len(n.children) == 0 {
		return n.node(true)
	}
	return g.Map(n.children, func(child jsonNode) g.Node { return child.node(isOpen) })
}
