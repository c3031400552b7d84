package cli

import (
	"fmt"
	"strings"
)

// nearest returns the word that is most similar to typed, or the empty string if no word is
// similar.
func nearest(typed string, words []string) (found string) {
	if strings.HasPrefix(typed, "-") {
		return "" // a flag needs --
	}
	least := min(2, (len(typed)-1)/2) + 1 // a short word is similar to every word
	for _, word := range words {
		if edits := editsBetween(typed, word); edits < least {
			found, least = word, edits
		}
	}
	return found
}

// IsNear reports whether a mistyped name may mean another one.
func IsNear(typed, name string) bool { return nearest(typed, []string{name}) != "" }

// didYouMean returns the question at the end of the message about a mistyped word. It returns "" if
// no word is similar. In the question, the text of before precedes the word.
func didYouMean(before, typed string, words []string) string {
	if word := nearest(typed, words); word != "" {
		return fmt.Sprintf("; did you mean %s%s?", before, word)
	}
	return ""
}

// editsBetween returns the edit distance of the two words. An edit adds, removes or replaces a
// letter, or swaps two adjacent letters.
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
