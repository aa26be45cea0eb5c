// Slips of the hand in the few words that the offline model knows.

const verbs = "run show list search find build lint count stop read check execute typecheck".split(" ");
const objects = "the tests test please linter typecheck project".split(" ");

/** Whether one letter more, one less, or two neighbours exchanged make the one word the other; `replaced` also allows one other letter. */
function isNear(word: string, known: string, replaced: boolean): boolean {
  if (word === known) return true;
  let start = 0;
  while (start < word.length && word[start] === known[start]) start += 1;
  const [a, b] = [word.slice(start), known.slice(start)];
  if (a.slice(1) === b || b.slice(1) === a) return true;
  if (a.length !== b.length) return false;
  return (a[0] === b[1] && a[1] === b[0] && a.slice(2) === b.slice(2)) || (replaced && a.slice(1) === b.slice(1));
}

/** The text with its first word as a verb, and others as words that go with one, where they are a slip away. */
export function corrected(text: string): string {
  const own = [...verbs, ...objects];
  return text
    .split(" ")
    .map((word, i) => {
      const lower = word.toLowerCase();
      if (!/^[a-z]{3,}$/.test(lower) || own.includes(lower)) return word;
      return (i === 0 ? verbs : objects).find((known) => isNear(lower, known, i === 0)) ?? word;
    })
    .join(" ");
}
