package cli

import (
	"fmt"
	"slices"
	"strings"

	"moorage/access"
	"moorage/management/client"
)

// AccessWords are the parsed operands of a command about access. A command sets only the fields for
// the operands in its help.
type AccessWords struct {
	Privileges []string
	Operation  string // the operation to explain; empty if the command names privileges
	Object     client.Object
	Grantee    string // a principal, a role, or a role of an issuer
	Principal  string // the key's principal
	Key        string // id of a key
	Role       string
	Members    []string
	Through    []client.Object // the views of explain
	Engine     string          // the principal that makes the request on behalf of Grantee
}

// objectWords is the notation for an object in help.
const objectWords = "server|KIND NAME"

// keyAlias is the alias of principals that have API keys.
const keyAlias = "key:"

// principalOf returns the principal called name that can have API keys. name may begin with
// keyAlias.
func principalOf(name string) (string, error) {
	if !strings.Contains(name, ":") {
		name = keyAlias + name
	}
	if access.GranteeOf(name) != access.IsPrincipal || !strings.HasPrefix(name, keyAlias) {
		return "", fmt.Errorf("%q is not the name of a key, such as etl", name)
	}
	return name, nil
}

// wordsOfKey reads NAME.
func wordsOfKey(c *Config, words []string) (err error) {
	if len(words) != 1 {
		return fmt.Errorf("takes one NAME")
	}
	c.Access.Principal, err = principalOf(words[0])
	return err
}

// wordsOfKeyID reads NAME ID.
func wordsOfKeyID(c *Config, words []string) (err error) {
	if len(words) != 2 {
		return fmt.Errorf("takes NAME ID, as moorage key list shows them")
	}
	c.Access.Key = words[1]
	c.Access.Principal, err = principalOf(words[0])
	return err
}

// wordsOfWithdrawal reads NAME ID, or nothing.
func wordsOfWithdrawal(c *Config, words []string) error {
	if len(words) == 0 {
		return nil
	}
	return wordsOfKeyID(c, words)
}

// wordsOfGrant reads PRIVILEGES on OBJECT preposition GRANTEE.
func wordsOfGrant(preposition string) func(*Config, []string) error {
	return func(c *Config, words []string) error {
		on, to := slices.Index(words, "on"), lastIndex(words, preposition)
		if on < 1 || to < on {
			return fmt.Errorf("takes PRIVILEGES on %s %s GRANTEE", objectWords, preposition)
		}
		var err error
		if c.Access.Privileges, err = privilegeWords(words[:on]); err != nil {
			return err
		}
		if c.Access.Object, err = objectOf(words[on+1 : to]); err != nil {
			return err
		}
		c.Access.Grantee, err = granteeOf(words[to+1:])
		return err
	}
}

// wordsOfGrants reads the words "on OBJECT" or "to GRANTEE".
func wordsOfGrants(c *Config, words []string) (err error) {
	switch {
	case len(words) > 1 && words[0] == "on":
		c.Access.Object, err = objectOf(words[1:])
	case len(words) > 1 && words[0] == "to":
		c.Access.Grantee, err = granteeOf(words[1:])
	default:
		err = fmt.Errorf("takes on %s, or to GRANTEE", objectWords)
	}
	return err
}

// wordsOfOwner reads OBJECT to GRANTEE.
func wordsOfOwner(c *Config, words []string) (err error) {
	to := lastIndex(words, "to")
	if to < 1 {
		return fmt.Errorf("takes KIND NAME to GRANTEE")
	}
	if c.Access.Object, err = objectOf(words[:to]); err != nil {
		return err
	}
	if c.Access.Object.IsServer() {
		return fmt.Errorf("the server has no owner")
	}
	c.Access.Grantee, err = granteeOf(words[to+1:])
	return err
}

// wordsOfExplain reads OPERATION on OBJECT, then optionally through VIEW..., for PRINCIPAL, by
// ENGINE.
func wordsOfExplain(c *Config, words []string) (err error) {
	if at := lastIndex(words, "by"); at > 0 {
		if c.Access.Engine, err = granteeOf(words[at+1:]); err != nil {
			return err
		}
		words = words[:at]
	}
	if at := lastIndex(words, "for"); at > 0 {
		if c.Access.Grantee, err = granteeOf(words[at+1:]); err != nil {
			return err
		}
		if access.GranteeOf(c.Access.Grantee) != access.IsPrincipal {
			return fmt.Errorf("%q is not a principal, which is issuer:subject, as in key:etl", c.Access.Grantee)
		}
		words = words[:at]
	}
	if at := lastIndex(words, "through"); at > 0 {
		for _, name := range words[at+1:] {
			view, err := client.ParseObject("view", name)
			if err != nil {
				return err
			}
			c.Access.Through = append(c.Access.Through, view)
		}
		words = words[:at]
	}
	on := slices.Index(words, "on")
	if on < 1 {
		return fmt.Errorf("takes OPERATION on %s [through VIEW...] [for PRINCIPAL [by ENGINE]]", objectWords)
	}
	if c.Access.Object, err = objectOf(words[on+1:]); err != nil {
		return err
	}
	if c.Access.Privileges, err = privilegeWords(words[:on]); err != nil && on == 1 {
		c.Access.Privileges, c.Access.Operation = nil, words[0]
		return nil
	}
	return err
}

// wordsOfRole reads NAME.
func wordsOfRole(c *Config, words []string) error {
	if len(words) != 1 {
		return fmt.Errorf("takes one NAME")
	}
	return c.Access.setRole(words[0])
}

// wordsOfMembers reads NAME, then one or more MEMBER.
func wordsOfMembers(c *Config, words []string) error {
	if len(words) < 2 {
		return fmt.Errorf("takes NAME MEMBER...")
	}
	for _, member := range words[1:] {
		if err := access.CheckGrantee(member); err != nil {
			return err
		}
	}
	c.Access.Members = words[1:]
	return c.Access.setRole(words[0])
}

func (w *AccessWords) setRole(name string) error {
	if access.GranteeOf(name) != access.IsRole {
		return fmt.Errorf("%q is not the name of a role: letters, digits, - _ .", name)
	}
	w.Role = name
	return nil
}

// privilegeWords reads privileges, with commas or spaces between them.
func privilegeWords(words []string) ([]string, error) {
	var each []string
	for _, word := range words {
		each = append(each, strings.FieldsFunc(word, func(r rune) bool { return r == ',' })...)
	}
	if _, err := access.Parse(each); err != nil {
		return nil, err
	}
	if len(each) == 0 {
		return nil, fmt.Errorf("names no privileges")
	}
	return each, nil
}

// objectOf reads "server", or a kind and a name.
func objectOf(words []string) (client.Object, error) {
	switch {
	case len(words) == 1 && words[0] == "server":
		return client.Object{}, nil
	case len(words) == 2:
		return client.ParseObject(words[0], words[1])
	}
	return client.Object{}, fmt.Errorf("%q is not server, or KIND NAME, such as table default.sales.orders",
		strings.Join(words, " "))
}

// granteeOf reads a grantee with an optional kind before it.
func granteeOf(words []string) (string, error) {
	kind := access.Nobody
	if len(words) == 2 {
		switch words[0] {
		case "role":
			kind = access.IsRole
		case "principal":
			kind = access.IsPrincipal
		}
	}
	if len(words) == 0 || len(words) > 2 || len(words) == 2 && kind == access.Nobody {
		return "", fmt.Errorf("%q is not one GRANTEE: a principal (issuer:subject) or a role", strings.Join(words, " "))
	}
	name := words[len(words)-1]
	if err := access.CheckGrantee(name); err != nil {
		return "", err
	}
	if is := access.GranteeOf(name); kind == access.IsPrincipal && is != kind ||
		kind == access.IsRole && is != access.IsRole && is != access.IsTokenRole {
		return "", fmt.Errorf("%q is not a %s", name, words[0])
	}
	return name, nil
}

// lastIndex returns the last index of word in words, or -1 if words does not contain it.
func lastIndex(words []string, word string) int {
	for i, each := range slices.Backward(words) {
		if each == word {
			return i
		}
	}
	return -1
}
