import type { VNode } from "preact";
import { expect, test } from "vitest";
import { isLong, Markdown, safeHref } from "../../src/web/shared/markdown.tsx";

type Found = { tag: string; props: Record<string, unknown> };

/** Every element that a text becomes; a code block stands as itself with its text. */
function elementsOf(node: unknown, found: Found[] = []): Found[] {
  if (Array.isArray(node)) for (const child of node) elementsOf(child, found);
  else if (typeof node === "object" && node !== null && "type" in node) {
    const { type, props } = node as VNode<{ children?: unknown }>;
    if (typeof type === "string") found.push({ tag: type, props: props as Record<string, unknown> });
    else found.push({ tag: type.name, props: props as Record<string, unknown> });
    elementsOf(props.children, found);
  }
  return found;
}
const rendered = (text: string): Found[] => elementsOf(Markdown({ text }));

function textOf(node: unknown): string {
  if (typeof node === "string") return node;
  if (Array.isArray(node)) return node.map(textOf).join("");
  return typeof node === "object" && node !== null && "props" in node ? textOf((node as VNode<{ children?: unknown }>).props.children) : "";
}

const allowed = new Set("div p strong em del code a ul ol li blockquote br hr table thead tbody tr th td span CodeBlock".split(" "));
const allowedProps = new Set("class dir href target rel start tabIndex children text lang key".split(" "));

const attacks = [
  "<script>alert(1)</script>",
  '<img src=x onerror="alert(1)">',
  "<svg/onload=alert(1)>",
  "[click](javascript:alert(1))",
  "[click](JaVaScRiPt:alert(1))",
  "[click](&#106;avascript:alert(1))",
  "[click](java\nscript:alert(1))",
  "[click](data:text/html,<script>alert(1)</script>)",
  "[click](vbscript:msgbox(1))",
  "[click](//evil.test)",
  "![x](https://evil.test/pixel.png)",
  "![x](javascript:alert(1))",
  "<https://good.test> <javascript:alert(1)>",
  "[a]: javascript:alert(1)\n\n[a]",
  '<a href="https://a.test" onclick="alert(1)">x</a>',
  "<iframe src=https://evil.test></iframe>",
  "<style>*{display:none}</style>",
  "`<img src=x onerror=alert(1)>`",
  "| <b onmouseover=alert(1)>a |\n|---|\n| [x](javascript:1) |",
  "> <form action=https://evil.test><input>",
  "- [ ] <input onfocus=alert(1) autofocus>",
  "<!--><img src=x onerror=alert(1)>-->",
  '<math><mtext></table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=alert(1)&gt;">',
];

test("no text becomes an element, an attribute or an address that is not on the list", () => {
  for (const attack of attacks) {
    for (const { tag, props } of rendered(attack)) {
      expect([attack, tag, allowed.has(tag)]).toEqual([attack, tag, true]);
      for (const name of Object.keys(props)) expect([attack, name, allowedProps.has(name)]).toEqual([attack, name, true]);
      if (tag === "a") {
        expect(String(props.href)).toMatch(/^https?:\/\//);
        expect(String(props.rel)).toContain("noopener");
      }
    }
  }
});

test("HTML in a text is shown as the text that it is", () => {
  expect(textOf(Markdown({ text: 'before <img src=x onerror="alert(1)"> after' }))).toBe('before <img src=x onerror="alert(1)"> after');
});

test("an image is a link, and nothing is loaded", () => {
  const links = rendered("![a chart](https://pictures.test/a.png)");
  expect(links.map(({ tag }) => tag)).toContain("a");
  expect(links.map(({ tag }) => tag)).not.toContain("img");
});

test("ordinary Markdown is rendered: lists, code, tables, references", () => {
  const tags = rendered("1. one\n2. **two** `three`\n\n```sh\nls\n```\n\n| a |\n|---|\n| b |\n\n# Title\n\n~~x~~").map(({ tag }) => tag);
  for (const tag of ["ol", "li", "strong", "code", "CodeBlock", "table", "td", "del"]) expect(tags).toContain(tag);
  expect(textOf(Markdown({ text: "a &lt; b &amp;&amp; c &#8230; &#x2713; &nope;" }))).toBe("a < b && c … ✓ &nope;");
});

test("a text that nests without end is still rendered", () => {
  expect(rendered(`${"> ".repeat(500)}deep`).length).toBeGreaterThan(0);
  expect(rendered("*".repeat(2000)).length).toBeGreaterThan(0);
});

test("only http and https addresses are links", () => {
  expect(safeHref("https://a.test/x")).toBe("https://a.test/x");
  for (const href of ["javascript:1", "/relative", "mailto:a@b.test", "ftp://a.test", ""]) expect(safeHref(href)).toBeNull();
});

test("long answers fold, short ones do not", () => {
  expect([isLong("short"), isLong("a\n".repeat(30)), isLong("a".repeat(2000))]).toEqual([false, true, true]);
});
