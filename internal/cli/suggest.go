package cli

import (
	"fmt"
	"strings"
)

// nearest returns the word that a mistyped one most likely means, and the empty string if none is
// near.
func nearest(typed string, words []string) (found string) {
	if strings.HasPrefix(typed, "-") {
		return "" // an unusual beginning of a flag
	}
	least := min(2, (len(typed)-1)/2) + 1 // short words are near to every word
	for _, word := range words {
		if edits := editsBetween(typed, word); edits < least {
			found, least = word, edits
		}
	}
	return found
}

// didYouMean returns the question that ends the message about a mistyped word, and the empty string
// if no word is near. The question has before in front of the word.
func didYouMean(before, typed string, words []string) string {
	if word := nearest(typed, words); word != "" {
		return fmt.Sprintf("; did you mean %s%s?", before, word)
	}
	return ""
}

// editsBetween returns how many letters must be added, removed, replaced, or swapped with the next
// one to change a into b.
func editsBetween(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			switch {
			case i == 0 || j == 0:
				rows[i][j] = i + j
				continue
			case a[i-1] == b[j-1]:
				rows[i][j] = rows[i-1][j-1]
			default:
				rows[i][j] = 1 + min(rows[i-1][j-1], rows[i-1][j], rows[i][j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
