package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Operand is the kind of an operand, for completion.
type Operand string

// The kinds of operands.
const (
	OperandName    Operand = "name"    // the name of an object
	OperandRef     Operand = "ref"     // a branch or a tag of the table in the operand before
	OperandVersion Operand = "version" // a version of the table in the operand before
	OperandEngine  Operand = "engine"
	OperandPart    Operand = "part" // a part of an object, for moorage show
	OperandOther   Operand = ""
)

const (
	// completeTimeout is the timeout of the request for completions, and of the command that prints
	// its token. Meanwhile a user waits at the prompt.
	completeTimeout = 300 * time.Millisecond
	// completeMax is the maximum number of completions.
	completeMax = 200
)

// completer returns the function that completes the operands of c.
func (c command) completer(env Environment) cobra.CompletionFunc {
	return func(cmd *cobra.Command, before []string, typed string) ([]string, cobra.ShellCompDirective) {
		const none = cobra.ShellCompDirectiveNoFileComp
		if len(c.operands) == 0 {
			return nil, none
		}
		kind := c.operands[min(len(before), len(c.operands)-1)]
		if kind == OperandPart {
			return startingWith(Parts(), typed), none
		}
		if kind == OperandOther || env.Complete == nil {
			return nil, none
		}
		var flags []string
		cmd.Flags().Visit(func(flag *pflag.Flag) {
			if kept, ok := flag.Value.(*keptValue); ok {
				for _, value := range kept.values {
					flags = append(flags, "--"+flag.Name+"="+value)
				}
			}
		})
		asked := command{name: c.name, settings: c.settings, connects: true, isCompleting: true}
		config, err := load(asked, flags, env.Environ)
		if err != nil {
			return nil, none
		}
		ctx, cancel := context.WithTimeout(context.Background(), completeTimeout)
		defer cancel()
		found := startingWith(env.Complete(ctx, config, kind, before, typed), typed)
		for _, word := range found {
			if strings.HasSuffix(word, ".") || strings.HasSuffix(word, "/") {
				return found, none | cobra.ShellCompDirectiveNoSpace // the user types on
			}
		}
		return found, none
	}
}

// startingWith returns the words that begin with typed, at most completeMax.
func startingWith(words []string, typed string) (found []string) {
	for _, word := range words {
		if strings.HasPrefix(word, typed) && len(found) < completeMax {
			found = append(found, word)
		}
	}
	return found
}

// keptValue is the value of a flag during a completion. It stores the typed text.
type keptValue struct {
	flagValue

	values []string
}

// Set implements pflag.Value.
func (v *keptValue) Set(text string) error {
	v.values = append(v.values, text)
	return nil
}
