import type { LoadContext, OptionValidationContext, Plugin } from "@docusaurus/types";

declare function chapterverse(context: LoadContext, options: chapterverse.Options): Plugin;
declare namespace chapterverse {
  interface Options {
    /** Address of the Chapterverse server. */
    server: string;
    /** Name of the button and the panel. */
    title?: string;
    /** CSS colour; without it, that of the site's links. */
    accent?: string;
    /** CSS font family; without it, that of the site's text. */
    font?: string;
    /** Address of an image. */
    logo?: string;
    /** Questions for the empty panel. */
    suggestions?: string[];
    /** Ask only this module of the book. */
    module?: string;
    /** Ask only this book, where the server has several. */
    book?: string;
    /** Ask this version of the book; without it, the latest. */
    version?: string;
    /** Ask only pages whose address begins so. */
    prefix?: string;
    theme?: "auto" | "light" | "dark";
    position?: "right" | "left";
    /** CSS selector of an element that the panel fills. */
    target?: string;
  }
  function validateOptions(context: OptionValidationContext<Options, Options>): Options;
}
export = chapterverse;
