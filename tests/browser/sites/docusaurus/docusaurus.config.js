module.exports = {
  title: "The Skerry Light",
  url: "http://site.test",
  baseUrl: "/",
  scripts: [
    {
      src: "http://chapterverse.test/widget.js",
      async: true,
      "data-title": "Ask the handbook",
      "data-prefix": "/",
    },
  ],
  plugins: [["@docusaurus/plugin-content-docs", { routeBasePath: "/" }]],
  themes: ["@docusaurus/theme-classic"],
  themeConfig: { navbar: { title: "The Skerry Light" } },
};
