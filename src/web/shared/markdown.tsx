/** @jsxImportSource preact */
// Text of the agent as a page shows it. Only Markdown's tokens are read and each becomes an element from this file:
// there is no way for HTML in a text to become HTML on the page, so nothing has to be sanitised afterwards.
import { Lexer, type Token, type Tokens } from "marked";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

const maxDepth = 12;

/** The address when it is an http or https one, else null. */
export function safeHref(href: string): string | null {
  if (!URL.canParse(href)) return null;
  const url = new URL(href);
  return url.protocol === "https:" || url.protocol === "http:" ? url.href : null;
}

const entities: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0" };

/** Character references as the characters that they mean; they become text, never markup. */
const unescaped = (text: string): string =>
  text.replace(/&(?:(amp|lt|gt|quot|apos|nbsp)|#(\d{1,7})|#x([\da-f]{1,6}));/gi, (all, name?: string, decimal?: string, hex?: string) => {
    if (name !== undefined) return entities[name.toLowerCase()] ?? all;
    const code = decimal === undefined ? Number.parseInt(hex ?? "", 16) : Number(decimal);
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : all;
  });

function CodeBlock(props: { text: string; lang: string }) {
  const [copied, setCopied] = useState<"idle" | "copied" | "failed">("idle");
  const copy = () => {
    navigator.clipboard.writeText(props.text).then(
      () => setCopied("copied"),
      () => setCopied("failed"),
    );
  };
  const word = { idle: "Copy", copied: "Copied", failed: "Select and copy by hand" }[copied];
  return (
    <div class={props.lang ? "code" : "code code-plain"}>
      <div class="code-bar">
        {props.lang ? <span>{props.lang}</span> : null}
        <button type="button" class="btn btn-bare" onClick={copy} aria-live="polite">
          {word}
        </button>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard. */}
      <pre tabIndex={0}>
        <code>{props.text}</code>
      </pre>
    </div>
  );
}

function link(href: string, children: ComponentChildren): ComponentChildren {
  const safe = safeHref(href);
  if (safe === null) return children;
  return (
    <a href={safe} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  );
}

const childrenOf = (token: Token, depth: number): ComponentChildren =>
  "tokens" in token && token.tokens && depth < maxDepth
    ? renderAll(token.tokens, depth + 1)
    : unescaped("text" in token && typeof token.text === "string" ? token.text : token.raw);

function renderTable(token: Tokens.Table, depth: number): ComponentChildren {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard.
    <div class="table-scroll" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {token.header.map((cell) => (
              <th dir="auto">{renderAll(cell.tokens, depth + 1)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {token.rows.map((row) => (
            <tr>
              {row.map((cell) => (
                <td dir="auto">{renderAll(cell.tokens, depth + 1)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function render(token: Token, depth: number): ComponentChildren {
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "paragraph":
      return <p dir="auto">{childrenOf(token, depth)}</p>;
    case "heading":
      return (
        <p dir="auto" class="heading">
          {childrenOf(token, depth)}
        </p>
      );
    case "code": {
      const code = token as Tokens.Code;
      return <CodeBlock text={code.text} lang={code.lang?.split(/\s/)[0] ?? ""} />;
    }
    case "blockquote":
      return <blockquote dir="auto">{childrenOf(token, depth)}</blockquote>;
    case "list": {
      const list = token as Tokens.List;
      const items = list.items.map((item) => (
        <li dir="auto">
          {item.task ? <span>{item.checked ? "☑ " : "☐ "}</span> : null}
          {childrenOf(item, depth)}
        </li>
      ));
      return list.ordered ? <ol start={Number(list.start) || 1}>{items}</ol> : <ul>{items}</ul>;
    }
    case "table":
      return renderTable(token as Tokens.Table, depth);
    case "hr":
      return <hr />;
    case "strong":
      return <strong>{childrenOf(token, depth)}</strong>;
    case "em":
      return <em>{childrenOf(token, depth)}</em>;
    case "del":
      return <del>{childrenOf(token, depth)}</del>;
    case "codespan":
      return <code>{(token as Tokens.Codespan).text}</code>;
    case "br":
      return <br />;
    case "link":
      return link((token as Tokens.Link).href, childrenOf(token, depth));
    case "image": {
      // Never loaded: an image would tell a stranger's server that the text was read.
      const image = token as Tokens.Image;
      return link(image.href, image.text || image.href);
    }
    case "checkbox":
      return null;
    case "text":
    case "escape":
      return childrenOf(token, depth);
    default:
      // HTML and everything unknown is shown as the text that it is.
      return token.raw;
  }
}

const renderAll = (tokens: readonly Token[], depth: number): ComponentChildren => tokens.map((token) => render(token, depth));

/** Markdown as elements of the whitelist above; a line break in a message is one on the page. */
export const Markdown = (props: { text: string }) => (
  <div class="prose">{renderAll(new Lexer({ gfm: true, breaks: true }).lex(props.text), 0)}</div>
);

/** Whether a text is so long that it starts folded. */
export const isLong = (text: string): boolean => text.length > 1400 || text.split("\n").length > 24;

/** What is long starts folded; moving the focus into it unfolds it. */
export function Folded(props: { long: boolean; children: ComponentChildren }) {
  const [open, setOpen] = useState(!props.long);
  if (!props.long) return <>{props.children}</>;
  return (
    <>
      <div class={open ? undefined : "folded"} onFocusIn={() => setOpen(true)}>
        {props.children}
      </div>
      <button type="button" class="btn btn-bare" aria-expanded={open} onClick={() => setOpen(!open)}>
        {open ? "Show less" : "Show all"}
      </button>
    </>
  );
}

/** Markdown that starts folded when it is long. */
export const FoldedMarkdown = (props: { text: string }) => (
  <Folded long={isLong(props.text)}>
    <Markdown text={props.text} />
  </Folded>
);
