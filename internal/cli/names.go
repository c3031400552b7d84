package cli

import (
	"fmt"
	"strings"

	"moorage"
)

// Name is the name of an object as people write it: [WAREHOUSE/]level.level.name.
type Name struct {
	Warehouse string   // empty: the warehouse given by --warehouse
	Levels    []string // empty: the warehouse itself
	// IsNamespace is set if the name ends in a dot, which marks a namespace.
	IsNamespace bool
	// IsAll is set for a single slash, which means all warehouses.
	IsAll bool
}

// nameExample is at the end of messages about names.
const nameExample = "write it as sales.orders or lake/sales.orders, and a level with a dot or a slash in double quotes"

// ParseName reads a name. A level in double quotes may contain dots and slashes; a double quote in
// it is written twice.
func ParseName(text string) (Name, error) {
	if text == "/" {
		return Name{IsAll: true}, nil
	}
	var n Name
	malformed := fmt.Errorf("%q is not the name of an object: %s", text, nameExample)
	for rest := text; rest != ""; {
		level, after, err := cutLevel(rest)
		if err != nil || level == "" {
			return Name{}, malformed
		}
		isFirst := n.Warehouse == "" && len(n.Levels) == 0
		switch {
		case strings.HasPrefix(after, "/") && isFirst:
			n.Warehouse, rest = level, after[1:]
			continue
		case strings.HasPrefix(after, "/"):
			return Name{}, malformed
		}
		n.Levels = append(n.Levels, level)
		if after == "." {
			n.IsNamespace, after = true, ""
		}
		rest = strings.TrimPrefix(after, ".")
	}
	if n.Warehouse == "" && len(n.Levels) == 0 {
		return Name{}, malformed
	}
	return n, nil
}

// cutLevel returns the first level of text, without its quotes, and the rest. The rest is empty or
// begins with a dot or a slash.
func cutLevel(text string) (level, remainder string, err error) {
	if !strings.HasPrefix(text, `"`) {
		end := strings.IndexAny(text, "./")
		if end < 0 {
			end = len(text)
		}
		return text[:end], text[end:], nil
	}
	var quoted strings.Builder
	for rest := text[1:]; ; {
		before, behind, closed := strings.Cut(rest, `"`)
		if !closed {
			return "", "", fmt.Errorf("%s has a quote that does not end", text)
		}
		quoted.WriteString(before)
		switch {
		case strings.HasPrefix(behind, `"`):
			quoted.WriteByte('"')
			rest = behind[1:]
		case behind == "" || behind[0] == '.' || behind[0] == '/':
			return quoted.String(), behind, nil
		default:
			return "", "", fmt.Errorf("%s has text behind a quote", text)
		}
	}
}

// String returns the name in the form that ParseName reads.
func (n Name) String() string {
	if n.IsAll {
		return "/"
	}
	text := moorage.PersonLevels(n.Levels...)
	if n.Warehouse != "" {
		text = moorage.PersonLevels(n.Warehouse) + "/" + text
	}
	if n.IsNamespace {
		text += "."
	}
	return text
}
