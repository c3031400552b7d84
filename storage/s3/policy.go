package s3

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"moorage/storage"
)

const (
	// policyCharactersMax is the maximum length of a session policy for AssumeRole, both at Amazon
	// and at compatible servers.
	policyCharactersMax = 2048
	// policyVersion is the version of the policy language.
	policyVersion = "2012-10-17"
	// lastPolicyCharacter is the last character that a session policy may contain.
	lastPolicyCharacter = '\u00FF'
	// metadataPattern matches the catalog's own files below the location of a table, at any depth.
	// The table property write.metadata.path decides where they are, and may have changed.
	metadataPattern = "*" + storage.MetadataEnding
)

// policy is a session policy, which limits a credential.
type policy struct {
	Version   string
	Statement []statement
}

// statement is a rule of a policy.
type statement struct {
	Effect    string
	Action    words
	Resource  words
	Condition *condition `json:",omitempty"`
}

// condition limits the listing of a bucket to some patterns.
type condition struct {
	StringLike prefixes
}

type prefixes struct {
	Prefix words `json:"s3:prefix"`
}

// words holds one or more words. A single word is encoded without a list, which is shorter.
type words []string

// MarshalJSON writes w.
func (w words) MarshalJSON() ([]byte, error) {
	if len(w) == 1 {
		return encode(w[0])
	}
	return encode([]string(w))
}

// encode encodes a value as JSON without the escapes for HTML, because each character of a policy
// counts.
func encode(value any) ([]byte, error) {
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(encoded.Bytes(), []byte("\n")), err
}

// policyTerms holds the parts of a policy other than the locations.
type policyTerms struct {
	partition string // of resource names, "aws"
	dialect   Dialect
	kmsKey    string // resource name of the key that encrypts the objects; empty if engines need none
	protect   bool   // keep the catalog's own files from writers
	write     bool
}

// policyFor returns the policy that allows the first of locations, and as many of the others as
// fit. It returns ErrUnscopable if no policy allows exactly the first one.
func policyFor(locations []storage.Location, terms policyTerms) (text string, covered int, err error) {
	for count := range locations {
		place := locations[:count+1]
		longer, err := terms.build(place)
		if err == nil && utf8.RuneCountInString(longer) > policyCharactersMax {
			err = fmt.Errorf("%w: %s: the policy has more than %d characters", storage.ErrUnscopable,
				place[count], policyCharactersMax)
		}
		if err != nil && count == 0 {
			return "", 0, err
		}
		if err != nil {
			break
		}
		text, covered = longer, count+1
	}
	if covered == 0 {
		// A policy without a resource would allow everything that the role allows.
		return "", 0, fmt.Errorf("%w: there are no locations", storage.ErrUnscopable)
	}
	return text, covered, nil
}

// build returns the policy that allows all of locations.
func (t policyTerms) build(locations []storage.Location) (string, error) {
	var objects, protected, buckets words
	patterns := make(map[string]words) // by bucket
	for _, location := range locations {
		folder, err := t.spell(location)
		if err != nil {
			return "", err
		}
		bucket := t.resource(location.Authority)
		if patterns[bucket] == nil {
			buckets = append(buckets, bucket)
		}
		patterns[bucket] = append(patterns[bucket], folder+"*")
		objects = append(objects, bucket+"/"+folder+"*")
		protected = append(protected, bucket+"/"+folder+metadataPattern)
	}
	made := policy{Version: policyVersion}
	made.allow(t.objectActions(), objects)
	for _, bucket := range buckets {
		made.Statement = append(made.Statement, statement{
			Effect: "Allow", Action: words{"s3:ListBucket"}, Resource: words{bucket},
			Condition: &condition{prefixes{patterns[bucket]}},
		})
	}
	made.allow(words{"s3:GetBucketLocation"}, buckets)
	if t.write && t.protect {
		made.Statement = append(made.Statement, statement{
			Effect: "Deny", Action: words{"s3:PutObject", "s3:DeleteObject"}, Resource: protected,
		})
	}
	if t.dialect != DialectAWS {
		made.Statement = append(made.Statement, statement{
			Effect: "Deny", Action: words{"s3:*"}, Resource: detours(buckets),
		})
	}
	if t.kmsKey != "" {
		keyActions := words{"kms:Decrypt"}
		if t.write {
			keyActions = append(keyActions, "kms:GenerateDataKey")
		}
		made.allow(keyActions, words{t.kmsKey})
	}
	text, err := encode(made)
	return string(text), err
}

// detours returns patterns for names that a server may clean after it has checked the policy.
// Cleaning, such as the removal of "..", turns them into names of other objects. Amazon's server
// does not clean names.
func detours(buckets words) (resources words) {
	for _, bucket := range buckets {
		for _, pattern := range []string{"/*/../*", "/*/./*", "/*//*"} {
			resources = append(resources, bucket+pattern)
		}
	}
	return resources
}

func (p *policy) allow(actions, resources words) {
	p.Statement = append(p.Statement, statement{Effect: "Allow", Action: actions, Resource: resources})
}

// objectActions returns the allowed actions on objects.
func (t policyTerms) objectActions() words {
	if !t.write {
		return words{"s3:GetObject"}
	}
	return words{"s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload",
		"s3:ListMultipartUploadParts"}
}

// resource returns the resource name of a bucket.
func (t policyTerms) resource(bucket string) string { return "arn:" + t.partition + ":s3:::" + bucket }

// spell returns the prefix of the keys below a location, as spelled in a policy. The prefix ends in
// a slash, so that a policy for "tab" does not allow the sibling "table". It returns ErrUnscopable
// if a policy cannot express the prefix, or if the server would read it differently.
func (t policyTerms) spell(location storage.Location) (string, error) {
	key := location.Path[1:]
	refuse := func(reason string) error {
		return fmt.Errorf("%w: %s: %s", storage.ErrUnscopable, location, reason)
	}
	isForeign := func(c rune) bool { return c < ' ' || c > lastPolicyCharacter }
	if strings.ContainsFunc(location.Authority+key, isForeign) {
		return "", refuse("a session policy has no characters beyond U+00FF")
	}
	if strings.ContainsAny(location.Authority, "*?$:/") {
		return "", refuse("that is not a valid name of a bucket")
	}
	if t.dialect != DialectAWS {
		if strings.ContainsAny(key, "*?$") {
			return "", refuse("only Amazon's policies can express *, ? and $")
		}
		if slices.Contains(strings.Split(key, "/")[:strings.Count(key, "/")], "") {
			return "", refuse("servers other than Amazon's may read two slashes as one")
		}
	}
	if key == "" {
		return "", nil // the whole bucket
	}
	return escapePattern(key) + "/", nil
}

// escapePattern escapes a key so that none of its characters count as wildcards or variables in a
// policy.
func escapePattern(key string) string {
	return strings.NewReplacer("*", "${*}", "?", "${?}", "$", "${$}").Replace(key)
}
