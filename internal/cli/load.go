package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// errHelp means that the user requested help.
var errHelp = errors.New("help")

// usageError holds all faults of a command line, the environment and the configuration file. Each
// fault is a sentence.
type usageError struct{ faults []string }

// Error returns the faults, each on its own line.
func (e *usageError) Error() string { return strings.Join(e.faults, "\n") }

// orNil returns e, or nil if it has no fault.
func (e *usageError) orNil() error {
	if len(e.faults) == 0 {
		return nil
	}
	return e
}

func (e *usageError) addf(format string, args ...any) {
	e.faults = append(e.faults, fmt.Sprintf(format, args...))
}

// given is a value as the user wrote it, and the place where it was found.
type given struct {
	where  string // "--listen", "MOORAGE_LISTEN", "moorage.yaml: listen"
	values []string
}

// load reads the settings of cmd. Flags override the environment, the environment overrides the
// file, and the file overrides the defaults. load reads everything before it returns all faults in
// one *usageError. It returns errHelp if the user requested help.
func load(cmd command, args, environ []string) (Config, error) {
	faults := &usageError{}
	line, err := parseLine(cmd, args, faults)
	if err != nil {
		return Config{}, err
	}
	understood := len(faults.faults) == 0 // otherwise validate would report faults that only follow from these
	fromEnv := parseEnviron(cmd.settings, environ)
	for _, s := range cmd.settings {
		if slices.ContainsFunc(s.unless, func(flag string) bool { return len(line.flags[flag].values) > 0 }) {
			delete(fromEnv, s.name)
		}
	}

	var fromFile map[string]given
	if file, ok := firstGiven("config", line.flags, fromEnv); ok && file.values[0] != "" {
		fromFile = parseFile(file.values[0], faults)
	}

	var c Config
	switch {
	case cmd.words != nil && !line.unclear:
		if err := cmd.words(&c, line.operands); err != nil {
			faults.addf("%s: %s", cmd.name, err)
			understood = false
		}
	case cmd.operand != "" && len(line.operands) == 1:
		c.Operand = line.operands[0]
	}
	for _, s := range cmd.settings {
		if _, ok := line.flags[s.name]; ok {
			c.Flags = append(c.Flags, s.name)
		}
		value, ok := firstGiven(s.name, line.flags, fromEnv, fromFile)
		if !ok {
			if s.required && !line.unclear {
				faults.addf("--%s is required", s.name)
			}
			if s.preset == "" {
				continue
			}
			value = given{where: "default of --" + s.name, values: []string{s.preset}}
		}
		if err := s.set(&c, value.values); err != nil {
			faults.addf("%s: %s%s", value.where, err, didYouMean("", value.values[0], choices(s.value)))
		}
	}
	if slices.ContainsFunc(cmd.settings, func(s setting) bool { return s.name == traceNames }) {
		c.OpenTelemetry = openTelemetry(environ)
	}
	if cmd.connects && understood {
		connect(&c, environ, cmd.isCompleting, faults)
	}
	if cmd.validate != nil && understood {
		cmd.validate(c, faults)
	}
	if err := faults.orNil(); err != nil {
		return Config{}, err
	}
	return c, nil
}

func firstGiven(name string, sources ...map[string]given) (given, bool) {
	for _, source := range sources {
		if value, ok := source[name]; ok {
			return value, true
		}
	}
	return given{}, false
}

// commandLine holds the arguments after the name of a command.
type commandLine struct {
	flags    map[string]given
	operands []string
	// unclear is set if an argument is not a flag of the command, or if the last flag has no value.
	// The user may have meant that argument as an operand. So a missing operand is not reported as
	// another fault.
	unclear bool
}

// parseLine reads the command line. Operands may come before, between or after the flags. pflag
// would stop at the first fault, but parseLine reports all faults.
func parseLine(cmd command, args []string, faults *usageError) (line commandLine, err error) {
	line.flags = make(map[string]given)
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		name, value, valued := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
		isShort := !strings.HasPrefix(arg, "--")
		at := slices.IndexFunc(cmd.settings, func(s setting) bool {
			return s.name == name || isShort && s.short != "" && s.short == name
		})
		switch {
		case arg == "--":
			line.operands, args = append(line.operands, args...), nil
			continue
		case !strings.HasPrefix(arg, "-") || arg == "-":
			line.operands = append(line.operands, arg)
			continue
		case isHelp(arg):
			return line, errHelp
		case at < 0:
			line.unclear = true
			if name != "" {
				arg = "--" + name
			}
			faults.addf("there is no flag %s%s", arg, didYouMean("--", name, namesOf(cmd.settings)))
			if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
				args = args[1:] // skip its value, which must not become a second fault
			}
			continue
		case valued:
		case cmd.settings[at].value == "":
			value = "true"
		case len(args) == 0:
			line.unclear = true
			faults.addf("--%s: needs a value", name)
			continue
		default:
			value, args = args[0], args[1:]
		}
		line.add(cmd.settings[at], value, faults)
	}
	line.checkOperand(cmd, faults)
	return line, nil
}

// namesOf returns the names of settings.
func namesOf(settings []setting) (names []string) {
	for _, s := range settings {
		names = append(names, s.name)
	}
	return names
}

func (line *commandLine) add(s setting, value string, faults *usageError) {
	old := line.flags[s.name]
	if len(old.values) > 0 && !s.list {
		faults.addf("--%s: given more than once", s.name)
		return
	}
	line.flags[s.name] = given{where: "--" + s.name, values: append(old.values, value)}
}

func (line *commandLine) checkOperand(cmd command, faults *usageError) {
	allowed := choices(cmd.operand)
	switch n := len(line.operands); {
	case cmd.words != nil: // the function words reads the operands
	case cmd.operand == "":
		for _, extra := range line.operands {
			faults.addf("unexpected argument %q", extra)
		}
	case n > 1 || n == 0 && !line.unclear:
		faults.addf("%s takes exactly one %s, not %d", cmd.name, cmd.operand, n)
	case n == 1 && len(allowed) > strings.Count(cmd.operand, "|") && !slices.Contains(allowed, line.operands[0]):
		faults.addf("%q is not one of %s%s", line.operands[0], cmd.operand, didYouMean("", line.operands[0], allowed))
	}
}

// parseEnviron picks the environment variables that belong to settings. Other variables with the
// prefix MOORAGE_ are not faults: container platforms set such variables for a service called
// moorage.
func parseEnviron(settings []setting, environ []string) map[string]given {
	found := make(map[string]given)
	for _, s := range settings {
		if s.flagOnly {
			continue
		}
		for _, pair := range environ {
			value, ok := strings.CutPrefix(pair, s.variable()+"=")
			if !ok {
				continue
			}
			values := []string{value}
			if s.list {
				values = strings.Fields(value)
			}
			found[s.name] = given{where: s.variable(), values: values}
		}
	}
	return found
}

// openTelemetry returns the variables of OpenTelemetry. They are not settings, because the
// specification of OpenTelemetry defines their names and values.
func openTelemetry(environ []string) map[string]string {
	found := make(map[string]string)
	for _, pair := range environ {
		if name, value, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "OTEL_") {
			found[name] = value
		}
	}
	return found
}

// parseFile reads a YAML mapping from names of settings to scalars, or to lists of them.
func parseFile(name string, faults *usageError) map[string]given {
	content, err := os.ReadFile(name)
	if err != nil {
		faults.addf("read configuration: %s", err)
		return nil
	}
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		faults.addf("%s: %s", name, err)
		return nil
	}
	if document.Kind == 0 {
		return nil // empty
	}
	mapping := document.Content[0]
	if mapping.Kind != yaml.MappingNode {
		faults.addf("%s: it must be a mapping from settings to values", name)
		return nil
	}
	known := slices.DeleteFunc(serverSettings(), func(s setting) bool { return s.name == "config" })
	found := make(map[string]given)
	for i := 0; i < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		where := fmt.Sprintf("%s, line %d: %s", name, key.Line, key.Value)
		at := slices.IndexFunc(known, func(s setting) bool { return s.name == key.Value })
		if at < 0 {
			faults.addf("%s: there is no such setting%s", where, didYouMean("", key.Value, namesOf(known)))
			continue
		}
		if _, twice := found[key.Value]; twice {
			faults.addf("%s: given more than once", where)
			continue
		}
		values, ok := scalars(value, known[at].list)
		switch {
		case !ok && known[at].list:
			faults.addf("%s: it must be a list of texts", where)
			continue
		case !ok:
			faults.addf("%s: it must be one value", where)
			continue
		}
		found[key.Value] = given{where: where, values: values}
	}
	return found
}

// scalars returns the text of a scalar, or of the scalars in a list.
func scalars(node *yaml.Node, list bool) ([]string, bool) {
	if node.Kind == yaml.ScalarNode && node.Tag != "!!null" {
		return []string{node.Value}, true
	}
	if !list || node.Kind != yaml.SequenceNode {
		return nil, false
	}
	values := make([]string, 0, len(node.Content))
	for _, element := range node.Content {
		if element.Kind != yaml.ScalarNode || element.Tag == "!!null" {
			return nil, false
		}
		values = append(values, element.Value)
	}
	return values, true
}
