package storage

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// LocationBytesMax is the maximum length of a location that Parse accepts. No file system or
	// object store in use takes a longer path.
	LocationBytesMax = 4096

	// MetadataEnding is the ending of the names of the catalog's own files, even of compressed
	// ones. Engines do not write files with such names.
	MetadataEnding = ".metadata.json"

	// escapedBytesMax is the maximum length of a result of Escape. File systems limit a name to 255
	// bytes. The remaining 55 bytes are for a suffix that makes the folder of a table unique.
	escapedBytesMax = 200
)

// Location is a parsed URI of a file or folder.
//
// Locations are not percent-decoded, whatever the scheme. Hadoop's Path, PyIceberg, DuckDB and
// Trino all take the bytes after the scheme literally, so file:///a%20b is the file "a%20b". A
// catalog that decoded locations would read different files than the engines do.
type Location struct {
	Scheme string // SchemeFile, SchemeMemory, SchemeS3, SchemeGCS or SchemeAzure
	// Authority is the bucket, or the container and the host of its account. It is empty for file,
	// and may be empty for memory.
	Authority string
	// Path is absolute and has no "." or ".." segments and no trailing slash. The root is "/". Only
	// s3 and gs, where the names of objects are opaque, allow empty segments.
	Path string
}

// The schemes in the normal form. Parse also accepts s3a and s3n, which it normalises to s3, and
// abfs, wasb and wasbs, which it normalises to abfss. These schemes refer to the same objects.
const (
	SchemeFile   = "file"
	SchemeMemory = "memory"
	SchemeS3     = "s3"
	SchemeGCS    = "gs"
	SchemeAzure  = "abfss"
)

// Parse reads a location in any spelling that clients use: file:/x, file:///x, file://localhost/x
// and the bare path /x; memory://a/x; s3://bucket/key; gs://bucket/name;
// abfss://container@account-host/path. Parse returns ErrLocation for anything else: relative paths,
// ".." segments, '?' and '#', control characters, invalid UTF-8, and names that Azure may read in
// two ways. '?' and '#' are refused because some engines end the path there, and some do not.
func Parse(location string) (Location, error) {
	if hasQuery(location) {
		return Location{}, malformed(location, "it has a query or fragment")
	}
	return ParseFile(location)
}

// ParseFile is like Parse, for the location of a file that a storage listed or a table recorded. It
// accepts '?' and '#' as ordinary bytes, because storages have files with such names. Use Parse for
// locations that clients choose, such as the location of a table.
func ParseFile(location string) (Location, error) {
	if err := checkCharacters(location); err != nil {
		return Location{}, err
	}
	scheme, authority, path, err := split(location)
	if err != nil {
		return Location{}, err
	}
	parsed := Location{Scheme: scheme, Authority: authority}
	switch scheme {
	case SchemeFile:
		if authority != "" && !strings.EqualFold(authority, "localhost") {
			return Location{}, malformed(location, "a file location has no host")
		}
		parsed.Authority = ""
	case SchemeMemory:
	case SchemeS3, "s3a", "s3n":
		if authority == "" {
			return Location{}, malformed(location, "the bucket is missing")
		}
		parsed.Scheme = SchemeS3
	case SchemeGCS:
		if authority == "" {
			return Location{}, malformed(location, "the bucket is missing")
		}
	default:
		if !isAzure(scheme) {
			return Location{}, malformed(location, "the scheme is not supported")
		}
		parsed.Scheme = SchemeAzure
		if parsed.Authority, err = azureAuthority(location, authority); err != nil {
			return Location{}, err
		}
	}
	isOpaque := parsed.Scheme == SchemeS3 || parsed.Scheme == SchemeGCS || parsed.Scheme == SchemeAzure
	parsed.Path, err = clean(location, path, isOpaque)
	if err == nil && parsed.Scheme == SchemeAzure {
		err = checkAzurePath(location, parsed.Path)
	}
	if err != nil {
		return Location{}, err
	}
	return parsed, nil
}

// String returns the normalised spelling of l. Two locations are the same place if their normalised
// spellings are equal. Claims and stores use this spelling. Answers to clients have the spelling
// that the client sent.
func (l Location) String() string {
	return l.Scheme + "://" + l.Authority + l.Path
}

// Normalise returns the normalised spelling of location. It returns ErrLocation if Parse refuses
// location.
func Normalise(location string) (string, error) {
	parsed, err := Parse(location)
	if err != nil {
		return "", err
	}
	return parsed.Normal(location), nil
}

// NormaliseFile is Normalise, but with ParseFile instead of Parse.
func NormaliseFile(location string) (string, error) {
	parsed, err := ParseFile(location)
	if err != nil {
		return "", err
	}
	return parsed.Normal(location), nil
}

// Normal returns l.String(). l must be the result of Parse for location. To save memory, Normal
// returns location itself if it is already normal, which is the usual case.
func (l Location) Normal(location string) string {
	rest, scheme := strings.CutPrefix(location, l.Scheme)
	rest, separator := strings.CutPrefix(rest, "://")
	rest, authority := strings.CutPrefix(rest, l.Authority)
	if scheme && separator && authority && rest == l.Path {
		return location
	}
	return l.String()
}

// IsMetadataFile reports whether location may be a metadata file because it ends in .json or
// .json.gz. This server and Java write names that end in MetadataEnding. Other writers leave out
// ".metadata".
func IsMetadataFile(location string) bool {
	return strings.HasSuffix(strings.TrimSuffix(location, ".gz"), ".json")
}

// Trim removes the slashes at the end of location. It keeps the slashes of "scheme://", and a slash
// that is the only character.
func Trim(location string) string {
	for len(location) > 1 && strings.HasSuffix(location, "/") && !strings.HasSuffix(location, "://") {
		location = location[:len(location)-1]
	}
	return location
}

// Join appends segments to location. It keeps location's spelling, but removes slashes at its end.
func Join(location string, segments ...string) string {
	var joined strings.Builder
	bytes := len(location)
	for _, segment := range segments {
		bytes += len("/") + len(segment)
	}
	joined.Grow(bytes)
	if location = Trim(location); location != "/" {
		joined.WriteString(location)
	}
	for _, segment := range segments {
		joined.WriteByte('/')
		joined.WriteString(segment)
	}
	if joined.Len() == 0 {
		return location
	}
	return joined.String()
}

// Escape turns any non-empty name into one segment of a location. Different names have different
// segments, and all engines take a segment for the same folder. ASCII letters, digits, '-', '_' and
// '.' stay, except in "." and "..". Every other byte becomes %XX. That includes non-ASCII bytes,
// because a JVM in the C locale cannot write them. If a name is too long for a folder, a hash
// replaces its end.
func Escape(name string) string {
	if name == "." || name == ".." {
		return strings.Repeat("%2E", len(name))
	}
	var escaped strings.Builder
	cut := 0 // length to keep of a name that is too long: whole characters that leave room for the hash
	for i := range len(name) {
		if escaped.Len() <= escapedBytesMax-hashBytes-1 {
			cut = escaped.Len()
		}
		if c := name[i]; isPlain(c) {
			escaped.WriteByte(c)
		} else {
			fmt.Fprintf(&escaped, "%%%02X", c)
		}
	}
	if escaped.Len() <= escapedBytesMax {
		return escaped.String()
	}
	sum := sha256.Sum256([]byte(name))
	return escaped.String()[:cut] + "~" + hex.EncodeToString(sum[:hashBytes/2])
}

// EscapeBelow is like Escape, for a name that becomes a segment directly below location. Azure
// drops a dot at the end of a name. Azure's clients for Java decode %XX, which other clients take
// literally. So in an Azure location, a dot at the end is escaped, and escaped bytes become =XX.
func EscapeBelow(location, name string) string {
	escaped := Escape(name)
	scheme, _, _ := strings.Cut(location, ":")
	if !isAzure(strings.ToLower(scheme)) {
		return escaped
	}
	if stem, found := strings.CutSuffix(escaped, "."); found {
		escaped = stem + "%2E"
	}
	return strings.ReplaceAll(escaped, "%", "=")
}

// hashBytes is the length of the hexadecimal hash that replaces the end of a long name.
const hashBytes = 32

// Within reports whether location is root or lies below it, whatever their spellings.
func Within(root, location string) (bool, error) {
	above, err := Parse(root)
	if err != nil {
		return false, err
	}
	parsed, err := Parse(location)
	if err != nil {
		return false, err
	}
	return above.Contains(parsed), nil
}

// Contains reports whether other is the same place as l or lies below l. It does not follow links.
func (l Location) Contains(other Location) bool {
	if l.Scheme != other.Scheme || l.Authority != other.Authority {
		return false
	}
	below, found := strings.CutPrefix(other.Path, strings.TrimSuffix(l.Path, "/"))
	return found && (strings.HasPrefix(below, "/") || l.Path == other.Path)
}

// Parent returns the folder that holds l. The root is its own parent.
func (l Location) Parent() Location {
	l.Path = strings.TrimRight(l.Path[:strings.LastIndexByte(l.Path, '/')], "/")
	if l.Path == "" {
		l.Path = "/"
	}
	return l
}

// Ancestors returns the folders that contain l, nearest first. It leaves out the root of the disk
// or bucket.
func (l Location) Ancestors() []Location {
	var ancestors []Location
	for folder := l.Parent(); folder.Path != "/"; folder = folder.Parent() {
		ancestors = append(ancestors, folder)
	}
	return ancestors
}

// split splits location into its parts. The scheme of a bare absolute path is file.
func split(location string) (scheme, authority, path string, err error) {
	if strings.HasPrefix(location, "//") {
		return "", "", "", malformed(location, "a path that starts with // may be taken for a host")
	}
	if strings.HasPrefix(location, "/") {
		return SchemeFile, "", location, nil
	}
	scheme, rest, found := strings.Cut(location, ":")
	if !found || strings.Contains(scheme, "/") {
		return "", "", "", malformed(location, "it is not absolute")
	}
	scheme = strings.ToLower(scheme)
	rest, hasAuthority := strings.CutPrefix(rest, "//")
	path = rest
	if hasAuthority {
		authority, _, found = strings.Cut(rest, "/")
		path = rest[len(authority):]
		if !found && authority != "" && scheme != SchemeFile {
			path = "/" // a bucket's root
		}
	}
	if !strings.HasPrefix(path, "/") {
		return "", "", "", malformed(location, "its path is not absolute")
	}
	return scheme, authority, path, nil
}

// clean converts path to the form of Location.Path.
func clean(location, path string, opaque bool) (string, error) {
	if isClean(path) { // usually true
		return path, nil
	}
	var cleaned strings.Builder
	for segment := range strings.SplitSeq(path, "/") {
		switch {
		case segment == "..":
			return "", malformed(location, `".." is not accepted`)
		case segment == "." && opaque:
			return "", malformed(location, `"." is not accepted`)
		case segment == ".", segment == "":
			continue
		}
		cleaned.WriteByte('/')
		cleaned.WriteString(segment)
	}
	switch {
	case opaque:
		return "/" + strings.TrimRight(path[1:], "/"), nil
	case cleaned.Len() == 0:
		return "/", nil
	}
	return cleaned.String(), nil
}

// isClean reports whether path is certain to need no cleaning. path must begin with a slash.
func isClean(path string) bool {
	for {
		path = path[1:]
		if path == "" || path[0] == '/' || path[0] == '.' {
			return false
		}
		slash := strings.IndexByte(path, '/')
		if slash < 0 {
			return true
		}
		path = path[slash:]
	}
}

func checkCharacters(location string) error {
	switch {
	case location == "":
		return malformed(location, "it is empty")
	case len(location) > LocationBytesMax:
		return malformed(location[:64]+"…", fmt.Sprintf("it has more than %d bytes", LocationBytesMax))
	case isOrdinary(location):
		return nil
	case !utf8.ValidString(location):
		return malformed(location, "it is not UTF-8")
	case strings.ContainsFunc(location, unicode.IsControl):
		return malformed(location, "it has a control character")
	}
	return nil
}

// hasQuery reports whether location has a character at which some readers of URIs end the path.
func hasQuery(location string) bool { return strings.ContainsAny(location, "?#") }

// ordinary is the set of characters in locations that need no further check.
var ordinary = func() (set [256]bool) {
	for c := ' '; c <= '~'; c++ {
		set[c] = true
	}
	return set
}()

// isOrdinary reports whether location has only characters that need no further check.
func isOrdinary(location string) bool {
	for i := range len(location) {
		if !ordinary[location[i]] {
			return false
		}
	}
	return true
}

func isPlain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-_.", c) >= 0
}

func malformed(location, reason string) error {
	return fmt.Errorf("%w: %q: %s", ErrLocation, location, reason)
}
